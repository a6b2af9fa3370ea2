import asyncio

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import Held, ResultWriter, Row
from app.db.execution.shards import Claim
from tests.integration.jobs import (
    call_row,
    claimed,
    execute,
    expire,
    new_job,
    response_row,
    scalar,
    take,
    verdict_row,
    whole_run,
)


def under(claim: Claim, *rows: Row) -> dict[Held, tuple[Row, ...]]:
    return {(claim.shard_id, claim.token): rows}


async def counts(engine: AsyncEngine) -> tuple[int, int, int]:
    tables = ("responses", "verdicts", "calls")
    responses, verdicts, calls = [await scalar(engine, f"SELECT count(*) FROM {table}") for table in tables]
    return responses, verdicts, calls


class TestWrite:
    async def test_rows_of_all_kinds_are_kept_as_they_are(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        text = "Tabs\t, lines\n, back\\slashes, \\N, {braces}, ünï𝄞."
        row = response_row(claim, content=text)
        assert (
            await ResultWriter(engine).write(under(claim, row, verdict_row(claim), call_row(claim))) == set()
        )
        assert await counts(engine) == (1, 1, 1)
        ((stored, starts, status),) = await execute(engine, "SELECT text, unit_starts, status FROM responses")
        assert (stored, starts, status) == (text, [0, 5], "answered")

    async def test_writing_the_same_again_changes_nothing(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        batch = under(claim, *whole_run(claim, 0), call_row(claim))
        for _ in range(2):
            assert await ResultWriter(engine).write(batch) == set()
        assert await counts(engine) == (1, 2, 1)

    async def test_what_is_there_already_keeps_nothing_else_out(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        first, second = whole_run(claim, 0), whole_run(claim, 1)
        await ResultWriter(engine).write(under(claim, first[0], first[1]))
        await ResultWriter(engine).write(under(claim, *first, *second, call_row(claim), *second))
        assert await counts(engine) == (2, 4, 1)

    async def test_what_is_there_already_keeps_nothing_else_out_after_a_column_with_a_default_was_added(
        self, engine: AsyncEngine
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        known = call_row(claim)
        await ResultWriter(engine).write(under(claim, known))
        await execute(engine, "ALTER TABLE calls ADD COLUMN colour int NOT NULL DEFAULT 7")
        await execute(
            engine, "ALTER TABLE calls ADD COLUMN twice int GENERATED ALWAYS AS (attempt * 2) STORED"
        )
        try:
            for _ in range(8):  # also as a prepared statement
                assert await ResultWriter(engine).write(under(claim, known, call_row(claim))) == set()
            assert await scalar(engine, "SELECT count(*) FROM calls WHERE colour = 7 AND twice = 2") == 9
        finally:
            await execute(engine, "ALTER TABLE calls DROP COLUMN colour, DROP COLUMN twice")

    async def test_what_is_new_takes_no_statement_beyond_its_copy(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await ResultWriter(engine).write(under(claim, *whole_run(claim, 0), call_row(claim)))
        assert await scalar(engine, "SELECT count(*) FROM pg_class WHERE relname LIKE 'new_%'") == 0

    async def test_of_two_writers_of_the_same_rows_both_succeed(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        batch = under(claim, *whole_run(claim, 0), call_row(claim))
        assert await asyncio.gather(*(ResultWriter(engine).write(batch) for _ in range(4))) == [set()] * 4
        assert await counts(engine) == (1, 2, 1)

    async def test_the_first_of_two_texts_stays(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        for content in ("First.", "Second."):
            await ResultWriter(engine).write(under(claim, response_row(claim, content=content, due=1)))
        assert await scalar(engine, "SELECT text FROM responses") == "First."

    async def test_a_row_that_postgres_refuses_takes_its_batch_with_it(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        with pytest.raises(psycopg.errors.NotNullViolation):
            await ResultWriter(engine).write(
                under(claim, call_row(claim), response_row(claim)._replace(tenant=None))  # type: ignore[arg-type] # the fault
            )
        assert await counts(engine) == (0, 0, 0)
        assert await ResultWriter(engine).write(under(claim, *whole_run(claim, 0))) == set()


class TestFence:
    async def test_a_stale_claims_results_are_refused_and_its_calls_kept(self, engine: AsyncEngine) -> None:
        old = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, old)
        new = await take(engine, old.shard_id)
        assert new is not None
        stale = await ResultWriter(engine).write(under(old, *whole_run(old, 0), call_row(old)))
        assert stale == {(old.shard_id, old.token)}
        assert await counts(engine) == (0, 0, 1)

    async def test_a_lease_that_ran_out_still_writes_until_somebody_claims_it(
        self, engine: AsyncEngine
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, claim)
        assert await ResultWriter(engine).write(under(claim, *whole_run(claim, 0))) == set()

    async def test_a_batch_may_mix_valid_and_stale_claims(self, engine: AsyncEngine) -> None:
        old = await claimed(engine, (await new_job(engine)).id)
        other = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, old)
        new = await take(engine, old.shard_id)
        assert new is not None
        # The old and the new claim on one shard are of the same process, in the same batch.
        batch = (
            under(old, response_row(old, content="Old.", due=1), call_row(old))
            | under(new, response_row(new, content="New.", due=1))
            | under(other, *whole_run(other, 0), call_row(other))
        )
        assert await ResultWriter(engine).write(batch) == {(old.shard_id, old.token)}
        texts = [row.text for row in await execute(engine, "SELECT text FROM responses ORDER BY text")]
        assert texts == ["New.", "One. Two."]
        assert (await counts(engine))[2] == 2

    async def test_a_shard_that_has_ended_takes_no_more_results(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await execute(engine, "UPDATE shards SET done = true")
        assert await ResultWriter(engine).write(under(claim, *whole_run(claim, 0))) == {
            (claim.shard_id, claim.token)
        }
        assert await counts(engine) == (0, 0, 0)
