import asyncio
import os
import signal
from collections.abc import Mapping, Sequence

import psycopg
import pytest
from psycopg import pq
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect
from app.db.execution import result_rows
from app.db.execution.result_rows import Held, ResultWriter, Row
from app.db.migration.migrate import upgrade
from app.services.execution import result_writer
from app.services.execution.result_writer import BatchWriter, StaleClaimError
from embedded.postgres import EmbeddedPostgres
from tests.conftest import scratch_directory
from tests.databases import libpq_url
from tests.integration.jobs import call_row, claimed, expire, new_job, response_row, scalar, take, verdict_row

END_FROZEN = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'frozen'"


class CountingWriter(ResultWriter):
    """Counts its transactions."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.transactions = 0
        self.started = asyncio.Event()

    async def write(self, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
        self.transactions += 1
        self.started.set()
        return await super().write(batch)


class TestBatchWriter:
    async def test_what_comes_while_a_transaction_runs_goes_into_the_next_one(
        self, engine: AsyncEngine
    ) -> None:
        claim = await claimed(engine, (await new_job(engine, iterations=15)).id)
        writer = CountingWriter(engine)
        rows = BatchWriter(writer)
        async with rows.running():
            first = rows.add(claim, response_row(claim, 0))
            await writer.started.wait()
            batches = {rows.add(claim, verdict_row(claim, 0, unit)) for unit in range(1000)}
            assert len(batches) == 1
            assert first not in batches
            for batch in {first} | batches:
                await batch.durable(claim)
        assert writer.transactions == 2
        assert await scalar(engine, "SELECT count(*) FROM verdicts") == 1000

    async def test_durable_means_committed(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        rows = BatchWriter(ResultWriter(engine))
        async with rows.running():
            await rows.add(claim, response_row(claim)).durable(claim)
            assert await scalar(engine, "SELECT count(*) FROM responses") == 1

    async def test_rows_outlive_a_process_that_stood_still_in_mid_transaction(
        self, engine: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While the server waits for the rows somebody else ends the transaction, as the sweeper does."""
        claim = await claimed(engine, (await new_job(engine)).id)
        frozen = connect(database_url, pool_size=1, application_name="frozen")
        current = result_rows._current
        ended: list[object] = []

        def standing_still(shards: pq.abc.PGresult) -> tuple[set[int], set[Held]]:
            if not ended:
                with psycopg.connect(libpq_url(database_url), autocommit=True) as other:
                    ended.extend(other.execute(END_FROZEN).fetchall())
            return current(shards)

        monkeypatch.setattr(result_rows, "_current", standing_still)
        rows = BatchWriter(ResultWriter(frozen))
        async with rows.running():
            await rows.add(claim, call_row(claim), response_row(claim)).durable(claim)
        await frozen.dispose()
        assert ended == [(True,)]
        assert await scalar(engine, "SELECT count(*) FROM calls") == 1
        assert await scalar(engine, "SELECT count(*) FROM responses") == 1

    async def test_leaving_writes_what_is_left(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        rows = BatchWriter(ResultWriter(engine))
        async with rows.running():
            rows.add(claim, response_row(claim))
        assert await scalar(engine, "SELECT count(*) FROM responses") == 1

    async def test_leaving_writes_what_came_into_a_batch_that_was_opened_without_rows(
        self, engine: AsyncEngine
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        writer = CountingWriter(engine)
        rows = BatchWriter(writer)
        async with rows.running():
            first = rows.add(claim, response_row(claim))
            await writer.started.wait()
            rows.add(claim)
            first.done.add_done_callback(lambda _: rows.add(claim, verdict_row(claim)))
            await first.durable(claim)
        assert await scalar(engine, "SELECT count(*) FROM verdicts") == 1

    async def test_a_stale_claim_is_told_and_a_valid_one_in_the_same_batch_is_not(
        self, engine: AsyncEngine
    ) -> None:
        old = await claimed(engine, (await new_job(engine)).id)
        other = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, old)
        new = await take(engine, old.shard_id)
        assert new is not None
        rows = BatchWriter(ResultWriter(engine))
        async with rows.running():
            batch = rows.add(old, response_row(old))
            assert rows.add(new, response_row(new)) is rows.add(other, response_row(other)) is batch
            await batch.durable(new)
            await batch.durable(other)
            with pytest.raises(StaleClaimError):
                await batch.durable(old)

    @pytest.mark.parametrize(
        ("text", "error"),
        [("NUL \0", psycopg.DataError), ("lone surrogate \ud800", UnicodeEncodeError)],
        ids=["refused by the database", "refused by the driver"],
    )
    async def test_a_batch_that_cannot_be_written_fails_and_the_next_one_does_not(
        self, engine: AsyncEngine, text: str, error: type[Exception]
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        rows = BatchWriter(ResultWriter(engine))
        async with rows.running():
            with pytest.raises(error):
                await rows.add(claim, response_row(claim, content=text)).durable(claim)
            await rows.add(claim, response_row(claim)).durable(claim)
        assert await scalar(engine, "SELECT text FROM responses") == "One. Two."

    async def test_a_row_that_is_refused_harms_no_other_shards_rows(self, engine: AsyncEngine) -> None:
        guilty = await claimed(engine, (await new_job(engine)).id)
        innocent = await claimed(engine, (await new_job(engine)).id)
        rows = BatchWriter(ResultWriter(engine))
        batches = {
            rows.add(guilty, verdict_row(guilty, 0, 40_000)),  # more than a smallint holds
            rows.add(innocent, response_row(innocent)),
        }
        assert len(batches) == 1
        async with rows.running():
            (batch,) = batches
            await batch.durable(innocent)
            with pytest.raises(psycopg.Error):
                await batch.durable(guilty)
        assert await scalar(engine, "SELECT cell_id FROM responses") == innocent.cell_id

    async def test_an_exhausted_pool_delays_rows_and_loses_none(
        self, engine: AsyncEngine, database_url: str
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        small = connect(database_url, pool_size=1, max_overflow=1)
        small.pool._timeout = 0.05  # type: ignore[attr-defined] # sooner than the 5 s that `connect` sets
        rows = BatchWriter(ResultWriter(small))
        async with rows.running():
            async with small.connect(), small.connect():  # the one, and the one overflow
                batch = rows.add(claim, response_row(claim))
                await asyncio.sleep(0.2)
                assert not batch.done.done()
            await batch.durable(claim)
        await small.dispose()

    async def test_too_many_unwritten_calls_hold_others_back_until_they_are_written(
        self, engine: AsyncEngine
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        rows = BatchWriter(ResultWriter(engine), most_unwritten=2)
        rows.add(
            claim, call_row(claim), response_row(claim), *(verdict_row(claim, 0, unit) for unit in range(9))
        )
        with_one_call = rows.has_room
        batch = rows.add(claim, call_row(claim))
        assert (with_one_call, rows.has_room) == (True, False)
        room = asyncio.create_task(rows.wait_for_room())
        assert (await asyncio.wait({room}, timeout=0.05))[1] == {room}
        async with rows.running():
            await asyncio.wait_for(room, 20)
            assert batch.done.done()

    @pytest.mark.parametrize(("on_the_wire", "enough"), [(0, 32), (90, 45)])
    async def test_the_rest_ends_early_once_as_many_calls_wait_as_half_of_those_on_the_wire(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, on_the_wire: int, enough: int
    ) -> None:
        monkeypatch.setattr(result_writer, "LONGEST_REST_SECONDS", 3600.0)
        monkeypatch.setattr(result_writer, "SHORTEST_REST_SECONDS", 3600.0)
        claim = await claimed(engine, (await new_job(engine)).id)
        rows = BatchWriter(ResultWriter(engine))
        rows.on_the_wire = on_the_wire
        async with rows.running():
            await rows.add(claim, call_row(claim)).durable(claim)  # after which the writer rests for an hour
            for unit in range(enough - 1):
                batch = rows.add(claim, call_row(claim), verdict_row(claim, 0, unit))
            assert (await asyncio.wait({batch.done}, timeout=0.1))[1] == {batch.done}
            assert rows.add(claim, call_row(claim)) is batch
            await asyncio.wait_for(batch.durable(claim), 20)


class TestDatabaseOutage:
    async def test_rows_survive_an_immediate_shutdown_of_postgres(self) -> None:
        with scratch_directory() as directory, EmbeddedPostgres(directory / "postgres") as postgres:
            upgrade(postgres.url())
            engine = connect(postgres.url())
            claim = await claimed(engine, (await new_job(engine, iterations=15)).id)
            rows = BatchWriter(ResultWriter(engine))
            async with rows.running():
                await rows.add(claim, response_row(claim, 0)).durable(claim)
                os.kill(postgres.process.pid or 0, signal.SIGQUIT)
                batch = rows.add(claim, response_row(claim, 1))
                await asyncio.to_thread(postgres.process.stop)
                assert not batch.done.done()
                rows.add(claim, response_row(claim, 2))
                await asyncio.to_thread(postgres.restart)
                await asyncio.wait_for(batch.durable(claim), 20)
            assert await scalar(engine, "SELECT count(*) FROM responses") == 3
            await engine.dispose()

    async def test_a_batch_fails_when_the_database_stays_away(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(result_writer, "RETRY_SECONDS", 0.1)
        claim = await claimed(engine, (await new_job(engine)).id)
        nowhere = connect("postgresql+psycopg://assay@/assay?host=/nonexistent")
        rows = BatchWriter(ResultWriter(nowhere))
        async with rows.running():
            with pytest.raises(DBAPIError):
                await asyncio.wait_for(rows.add(claim, response_row(claim)).durable(claim), 5)

    async def test_a_batch_fails_when_the_database_stays_frozen(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class FrozenWriter(ResultWriter):
            async def write(self, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
                await asyncio.Event().wait()
                return await super().write(batch)

        monkeypatch.setattr(result_writer, "RETRY_SECONDS", 0.1)
        claim = await claimed(engine, (await new_job(engine)).id)
        rows = BatchWriter(FrozenWriter(engine))
        async with rows.running():
            with pytest.raises(TimeoutError, match="no answer in time"):
                await asyncio.wait_for(rows.add(claim, response_row(claim)).durable(claim), 60)
