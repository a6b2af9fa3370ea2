import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution import shards, stored_rows
from app.db.execution.result_rows import ResultWriter, Row
from app.db.execution.shards import ALL, Among, AnyClaim, Claim
from app.db.jobs import jobs
from app.domain.jobs.priority import Priority
from app.domain.jobs.status import JobStatus
from tests.integration.jobs import (
    LEASE_SECONDS,
    call_row,
    claimed,
    execute,
    expire,
    new_job,
    response_row,
    scalar,
    shard_ids,
    take,
    verdict_row,
    whole_run,
)


async def write(engine: AsyncEngine, claim: Claim, *rows: Row) -> None:
    assert await ResultWriter(engine).write({(claim.shard_id, claim.token): rows}) == set()


async def finish(engine: AsyncEngine, claim: Claim) -> bool:
    async with engine.begin() as connection:
        return await shards.finish(connection, claim)


async def release(engine: AsyncEngine, claim: Claim, *, failed: bool = False) -> int:
    async with engine.begin() as connection:
        return await shards.release(connection, claim, failed=failed)


async def renew(engine: AsyncEngine, *claims: Claim) -> set[AnyClaim]:
    async with engine.begin() as connection:
        return await shards.renew(connection, dict.fromkeys(claims, 3), LEASE_SECONDS)


async def refill(engine: AsyncEngine, job_id: str, window: int) -> list[int]:
    async with engine.begin() as connection:
        await jobs.lock_job(connection, job_id)
        return await shards.refill(connection, job_id, window)


class TestClaim:
    async def test_of_twenty_at_once_one_wins(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        (shard_id,) = await shard_ids(engine, job.id)
        claims = await asyncio.gather(*(take(engine, shard_id, f"worker {n}") for n in range(20)))
        (winner,) = [claim for claim in claims if claim is not None]
        assert (winner.token, winner.job_id, winner.run_start, winner.run_stop) == (1, job.id, 0, 2)

    async def test_a_lease_that_ran_out_is_claimed_anew_under_a_greater_token(
        self, engine: AsyncEngine
    ) -> None:
        first = await claimed(engine, (await new_job(engine)).id)
        assert await take(engine, first.shard_id) is None
        await expire(engine, first)
        second = await take(engine, first.shard_id)
        assert second is not None
        assert (first.token, second.token) == (1, 2)

    @pytest.mark.parametrize(
        "status", ["paused", "cancelling", "finalizing", "completed", "failed", "cancelled"]
    )
    async def test_only_an_active_jobs_shards_can_be_claimed(self, engine: AsyncEngine, status: str) -> None:
        job = await new_job(engine)
        await execute(engine, "UPDATE jobs SET status = :status", status=status)
        assert await take(engine, (await shard_ids(engine, job.id))[0]) is None

    async def test_others_share_what_is_called_as_long_as_they_have_a_key_that_is_good(
        self, engine: AsyncEngine
    ) -> None:
        shared = [(await claimed(engine, (await new_job(engine)).id)).shared]
        key = "('key_1', 'other', 'a key', ARRAY['read'], 'prefix', 'digest')"
        statements = (
            f"INSERT INTO api_keys (id, tenant, name, scopes, prefix, digest) VALUES {key}",
            "UPDATE api_keys SET expires_at = clock_timestamp() - interval '1 second'",
            "UPDATE api_keys SET expires_at = clock_timestamp() + interval '1 hour'",
            "UPDATE api_keys SET revoked_at = clock_timestamp()",
        )
        for statement in statements:
            await execute(engine, statement)
            shared.append((await claimed(engine, (await new_job(engine)).id)).shared)
        assert shared == [False, True, False, True, False]

    async def test_a_claim_waits_for_a_cancellation_that_is_under_way(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        (shard_id,) = await shard_ids(engine, job.id)
        async with engine.begin() as connection:
            await connection.exec_driver_sql("UPDATE jobs SET status = 'cancelling'")
            claim = asyncio.create_task(take(engine, shard_id))
            assert (await asyncio.wait({claim}, timeout=0.1))[1] == {claim}
        assert await claim is None

    async def test_a_claim_that_waited_for_a_stale_writer_has_a_whole_lease(
        self, engine: AsyncEngine
    ) -> None:
        (shard_id,) = await shard_ids(engine, (await new_job(engine)).id)
        async with engine.begin() as writer:
            await writer.execute(text("SELECT FROM shards FOR SHARE"))
            claim = asyncio.create_task(take(engine, shard_id))
            await asyncio.sleep(1.0)
        assert await claim is not None
        left = await scalar(
            engine, "SELECT extract(epoch FROM lease_expires_at - clock_timestamp()) FROM shards"
        )
        assert left > LEASE_SECONDS - 0.9

    async def test_there_is_nothing_to_claim_of_a_shard_that_is_done_or_gone(
        self, engine: AsyncEngine
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await execute(engine, "UPDATE shards SET done = true, lease_expires_at = NULL")
        assert await take(engine, claim.shard_id) is None
        assert await take(engine, claim.shard_id + 1000) is None


class TestClaimNext:
    async def test_tenants_take_turns_whoever_has_more_jobs_and_came_first(self, engine: AsyncEngine) -> None:
        mine = [await new_job(engine, tenant="mine", iterations=240) for _ in range(3)]
        yours = await new_job(engine, tenant="yours", iterations=240)
        taken = [claim.job_id for claim in await take_turns(engine, 6)]
        assert taken[:2] == [mine[0].id, yours.id]  # the older job first
        assert taken.count(yours.id) == 3
        assert sorted(taken[0::2]) == sorted(job.id for job in mine)  # a tenant's jobs take turns, too

    async def test_of_a_tenants_jobs_that_of_higher_priority_comes_first_but_not_again_and_again(
        self, engine: AsyncEngine
    ) -> None:
        low, normal, high = [
            await new_job(engine, iterations=240, priority=priority)
            for priority in (Priority.LOW, Priority.NORMAL, Priority.HIGH)
        ]
        taken = [claim.job_id for claim in await take_turns(engine, 4)]
        assert taken == [high.id, normal.id, low.id, high.id]

    async def test_a_job_of_low_priority_that_has_waited_for_long_comes_before_new_ones_of_high(
        self, engine: AsyncEngine
    ) -> None:
        low = await new_job(engine, iterations=240, priority=Priority.LOW)
        high = await new_job(engine, iterations=240, priority=Priority.HIGH)
        first = (await shard_ids(engine, high.id))[0]
        for minutes, expected in ((0, first), (19, first), (21, (await shard_ids(engine, low.id))[0])):
            made = f"(SELECT created_at FROM jobs WHERE id = :high) - interval '{minutes} minutes'"
            await execute(
                engine, f"UPDATE jobs SET created_at = {made} WHERE id = :low", low=low.id, high=high.id
            )
            assert await next_in_turn(engine) == expected

    async def test_the_named_shard_goes_before_its_job_s_others_only(self, engine: AsyncEngine) -> None:
        first = await new_job(engine, iterations=240)
        second = await new_job(engine, iterations=240)
        assert (
            await next_in_turn(engine, shard_id=(await shard_ids(engine, first.id))[2])
            == ((await shard_ids(engine, first.id))[2])
        )
        assert (
            await next_in_turn(engine, shard_id=(await shard_ids(engine, second.id))[1])
            == ((await shard_ids(engine, first.id))[0])
        )

    async def test_a_lease_that_ran_out_counts_no_more_and_its_shard_is_free(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        assert await next_in_turn(engine) is None
        await expire(engine, claim)
        assert await next_in_turn(engine, Among(of_tenant_below=1)) == claim.shard_id

    async def test_only_those_below_a_number_that_have_waited_for_long_enough(
        self, engine: AsyncEngine
    ) -> None:
        await new_job(engine, tenant="mine", iterations=240)
        await take_turns(engine, 2)
        assert await next_in_turn(engine, Among(of_tenant_below=2)) is None
        assert await next_in_turn(engine, Among(of_tenant_below=3)) is not None
        other = await new_job(engine, tenant="mine")
        of_jobs = Among(of_tenant_below=0, of_job_below=1)
        assert await next_in_turn(engine, of_jobs) == (await shard_ids(engine, other.id))[0]
        assert await next_in_turn(engine, of_jobs._replace(quiet_seconds=60)) is None
        assert await next_in_turn(engine, Among(of_tenant_below=2, of_job_below=1)) is not None

    @pytest.mark.parametrize(("parked", "answered"), [(False, False), (True, False), (True, True)])
    async def test_a_shard_has_its_turn_in_just_those_states_in_which_it_can_be_claimed(
        self, engine: AsyncEngine, *, parked: bool, answered: bool
    ) -> None:
        values = {"parked": parked, "answered": answered}
        for status in JobStatus:
            job = await new_job(engine)
            await execute(engine, "UPDATE jobs SET status = :status WHERE id = :id", id=job.id, status=status)
            await execute(engine, "UPDATE shards SET parked = :parked, answered = :answered", **values)
            found = await next_in_turn(engine)
            assert (found is None) == (await take(engine, (await shard_ids(engine, job.id))[0]) is None), (
                status
            )

    async def test_one_that_is_just_being_claimed_is_passed_over(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, iterations=240)
        first, second, *_ = await shard_ids(engine, job.id)
        async with engine.begin() as connection:
            assert await shards.claim(connection, first, "a worker", LEASE_SECONDS)
            assert await next_in_turn(engine) == second

    async def test_of_twenty_at_once_each_gets_another_one(self, engine: AsyncEngine) -> None:
        for _ in range(4):
            await new_job(engine, iterations=240)
        claims = await asyncio.gather(*(take_next(engine, f"worker {n}") for n in range(20)))
        taken = [claim.shard_id for claim in claims if claim is not None]
        waiting = await scalar(
            engine, "SELECT count(*) FROM shards WHERE announced_at IS NOT NULL AND lease_owner IS NULL"
        )
        assert len(taken) == len(set(taken))
        assert len(taken) == 20 or not waiting

    async def test_a_job_that_somebody_has_locked_holds_up_no_other(self, engine: AsyncEngine) -> None:
        locked, other = await new_job(engine), await new_job(engine)
        async with engine.begin() as connection:
            await jobs.lock_job(connection, locked.id)
            claim = await asyncio.wait_for(take_next(engine), 20)
            assert claim is not None
            assert claim.job_id == other.id
            assert await asyncio.wait_for(take_next(engine), 20) is None
        claim = await take_next(engine)
        assert claim is not None
        assert claim.job_id == locked.id

    async def test_one_that_is_cancelled_meanwhile_is_not_claimed(self, engine: AsyncEngine) -> None:
        await new_job(engine)
        async with engine.begin() as connection:
            await connection.exec_driver_sql("UPDATE jobs SET status = 'cancelling'")
            assert await take_next(engine) is None
        assert await take_next(engine) is None


async def next_in_turn(engine: AsyncEngine, among: Among = ALL, *, shard_id: int | None = None) -> int | None:
    """Whose turn it is; the claim is taken back."""
    async with engine.connect() as connection:
        claim = await shards.claim_next(connection, "a worker", LEASE_SECONDS, among, shard_id)
        await connection.rollback()
    return None if claim is None else claim.shard_id


async def take_next(engine: AsyncEngine, owner: str = "a worker") -> AnyClaim | None:
    async with engine.begin() as connection:
        return await shards.claim_next(connection, owner, LEASE_SECONDS)


async def take_turns(engine: AsyncEngine, number: int) -> list[AnyClaim]:
    """The claims of those whose turn it is, one after the other."""
    claims = [await take_next(engine) for _ in range(number)]
    return [claim for claim in claims if claim is not None]


class TestRenew:
    async def test_it_keeps_what_is_ours_and_names_it(self, engine: AsyncEngine) -> None:
        lost = await claimed(engine, (await new_job(engine)).id)
        kept = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, lost)
        taken = await take(engine, lost.shard_id, "somebody else")
        await expire(engine, kept)  # late, but nobody has claimed it
        assert await renew(engine, lost, kept) == {kept}
        assert taken is not None
        assert await take(engine, kept.shard_id) is None
        assert await renew(engine, taken) == {taken}

    async def test_two_claims_of_one_process_on_one_shard_are_told_apart(self, engine: AsyncEngine) -> None:
        old = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, old)
        new = await take(engine, old.shard_id)
        assert new is not None
        assert await renew(engine, old, new) == {new}

    async def test_what_was_given_back_meanwhile_is_free(self, engine: AsyncEngine) -> None:
        """A renewal waits for the row of a shard that is just being given back."""
        claim = await claimed(engine, (await new_job(engine)).id)
        async with engine.begin() as connection:
            await shards.release(connection, claim, failed=False)
            renewal = asyncio.create_task(renew(engine, claim))
            assert (await asyncio.wait({renewal}, timeout=0.1))[1] == {renewal}
        assert await renewal == set()
        async with engine.connect() as connection:
            assert await jobs.open_work(connection, claim.job_id) == (1, 0)


class TestRelease:
    async def test_the_shard_can_be_announced_and_claimed_at_once(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        assert await release(engine, claim) == 0
        assert await refill(engine, claim.job_id, 16) == [claim.shard_id]
        assert await take(engine, claim.shard_id) is not None

    async def test_failures_are_counted_over_claims(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        counts = [await release(engine, await claimed(engine, job.id), failed=True) for _ in range(3)]
        assert counts == [1, 2, 3]

    async def test_a_stale_claim_releases_nothing(self, engine: AsyncEngine) -> None:
        old = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, old)
        new = await take(engine, old.shard_id)
        assert new is not None
        assert await release(engine, old, failed=True) == 0
        assert await renew(engine, new) == {new}


class TestFinish:
    async def test_a_whole_shard_ends_and_its_rows_are_added_up_once(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        failed = verdict_row(claim, 1, 1, score=None)
        await write(engine, claim, *whole_run(claim, 0), *whole_run(claim, 1)[:2], failed)
        await write(engine, claim, call_row(claim), call_row(claim), call_row(claim, outcome="retry"))
        assert await finish(engine, claim)
        ((answered, due, judged, unjudged),) = await execute(
            engine, "SELECT responses_answered, verdicts_due, verdicts_answered, verdicts_failed FROM shards"
        )
        assert (answered, due, judged, unjudged) == (2, 4, 3, 1)
        ((calls, failed_calls, tokens, usd),) = await execute(
            engine, "SELECT calls, failed_calls, input_tokens, usd FROM shard_usage"
        )
        assert (calls, failed_calls, tokens, usd) == (3, 1, 20, 1.0)
        assert not await finish(engine, claim)

    async def test_a_missing_response_keeps_it_open(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await write(engine, claim, *whole_run(claim, 0))
        assert not await finish(engine, claim)

    async def test_a_missing_verdict_keeps_it_open(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await write(engine, claim, *whole_run(claim, 0), *whole_run(claim, 1)[:2])
        assert not await finish(engine, claim)

    async def test_a_stale_claim_ends_nothing(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await write(engine, claim, *whole_run(claim, 0), *whole_run(claim, 1))
        await expire(engine, claim)
        new = await take(engine, claim.shard_id)
        assert new is not None
        assert not await finish(engine, claim)
        assert await finish(engine, new)

    async def test_another_shards_rows_do_not_count(self, engine: AsyncEngine) -> None:
        # 100 runs of an essay make several shards of one cell.
        job = await new_job(engine, iterations=100)
        first, second = (await shard_ids(engine, job.id))[:2]
        ours, theirs = await take(engine, first), await take(engine, second)
        assert ours is not None
        assert theirs is not None
        assert ours.run_stop == theirs.run_start
        for run in range(theirs.run_start, theirs.run_stop):
            await write(engine, theirs, *whole_run(theirs, run))
        assert not await finish(engine, ours)
        assert await finish(engine, theirs)


class TestRefill:
    async def test_a_window_of_shards_is_announced_in_their_order(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, iterations=200, window=3)
        ids = await shard_ids(engine, job.id)
        assert await scalar(engine, "SELECT count(*) FROM shards WHERE announced_at IS NOT NULL") == 3
        assert await refill(engine, job.id, 3) == []
        assert await refill(engine, job.id, 5) == ids[3:5]

    async def test_what_has_ended_makes_room(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, iterations=200, window=3)
        ids = await shard_ids(engine, job.id)
        await execute(engine, "UPDATE shards SET done = true WHERE id = :id", id=ids[1])
        assert await refill(engine, job.id, 3) == [ids[3]]

    async def test_the_window_holds_when_many_refill_it_at_once(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, iterations=400, window=1)
        announced = await asyncio.gather(*(refill(engine, job.id, 6) for _ in range(10)))
        assert sorted(len(ids) for ids in announced) == [0] * 9 + [5]


class TestStored:
    async def test_a_claim_sees_what_an_earlier_one_has_written(self, engine: AsyncEngine) -> None:
        old = await claimed(engine, (await new_job(engine)).id)
        await write(engine, old, response_row(old, 1), verdict_row(old, 1, 0))
        await expire(engine, old)
        new = await take(engine, old.shard_id)
        assert new is not None
        async with engine.connect() as connection:
            (stored,) = await stored_rows.stored_responses(connection, new)
            assert stored == response_row(old, 1)
            assert await stored_rows.stored_verdicts(connection, new) == {(1, 0, 0, 0, 0)}
