"""Jobs whose worker dies or is stopped."""

from datetime import timedelta

from tests.world import Reply, World


class TestLeases:
    async def test_what_a_dead_worker_holds_is_done_when_its_lease_expires(self, world: World) -> None:
        world.configure(worker=False, lease_seconds=20)
        job = await world.submit()
        await world.claim_for_dead_worker(job)
        await world.start_worker()
        held_since = world.now
        assert (await world.run())["completeness"] == "full"
        assert min(call.at for call in world.provider.calls) - held_since >= timedelta(seconds=20)

    async def test_a_worker_that_stops_finishes_its_calls_and_the_next_one_goes_on(
        self, world: World
    ) -> None:
        world.provider.reply_always(Reply(delay=30))
        await world.submit()
        await world.advance(seconds=10)
        await world.stop_worker()
        assert (len(world.provider.called("generation")), world.provider.called("judging")) == (2, [])
        await world.start_worker()
        assert (await world.run())["completeness"] == "full"
        assert len(world.provider.called("generation")) == 2
