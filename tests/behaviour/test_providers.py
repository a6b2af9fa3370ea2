"""Jobs whose provider limits them, refuses or breaks off."""

from datetime import timedelta

from tests.world import BROKEN, Reply, World

MINUTE = timedelta(minutes=1)


class TestLimits:
    async def test_an_operators_limit_refills(self, world: World) -> None:
        world.configure(connection={"limits": {"requests_per_minute": 3}})
        await world.submit()
        await world.run()
        first, _, _, fourth = (call.at for call in world.provider.called("judging"))
        assert MINUTE <= fourth - first < 1.1 * MINUTE

    async def test_a_wait_that_the_provider_asks_for_is_kept(self, world: World) -> None:
        world.provider.reply(Reply("slow down", status=429, headers={"retry-after": "30"}))
        await world.submit()
        job = await world.run()
        refused, *later = world.provider.calls
        assert min(call.at for call in later) - refused.at >= timedelta(seconds=30)
        assert (job["completeness"], job["usage"]["failed_calls"]) == ("full", 1)

    async def test_a_broken_connection_costs_an_attempt(self, world: World) -> None:
        world.provider.reply(BROKEN)
        await world.submit()
        job = await world.run()
        assert (job["completeness"], job["usage"]["failed_calls"]) == ("full", 1)
        first, second, *_ = world.provider.called("generation")
        assert first.place == second.place


class TestRefusals:
    async def test_a_judge_that_refuses_once_leaves_one_sentence_without_a_score(self, world: World) -> None:
        world.provider.reply("I'm sorry, I can't help with that.", to="judging")
        job = await world.submit()
        await world.run()
        page = await world.get(f"/v1/jobs/{job['id']}/responses")
        verdicts = [
            verdict for text in page["data"] for each in text["units"] for verdict in each["verdicts"]
        ]
        assert sorted(verdict["status"] for verdict in verdicts) == ["refused", "scored", "scored", "scored"]

    async def test_a_writer_that_refuses_is_not_judged(self, world: World) -> None:
        world.provider.reply("I'm sorry, but I can't help with that.")
        await world.submit()
        await world.run()
        assert len(world.provider.called("judging")) == 2  # the other response's sentences


class TestBudgets:
    async def test_a_job_whose_budget_ends_pauses_and_goes_on_with_a_larger_one(self, world: World) -> None:
        job = await world.submit(budget={"calls": 3})
        paused = await world.run()
        assert (paused["status"], paused["status_reason"]) == ("paused", "budget_exhausted")
        assert len(world.provider.calls) == 3
        await world.patch(f"/v1/jobs/{job['id']}", {"budget": {"calls": 6}})
        await world.post(f"/v1/jobs/{job['id']}/resume")
        assert (await world.run())["completeness"] == "full"
        assert len(world.provider.calls) == 6
