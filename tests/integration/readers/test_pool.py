"""Child processes that read files: results, limits, crashes, places and ends."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import psutil  # type: ignore[import-untyped] # it comes without types
import pytest
import pytest_asyncio

from app.domain.errors import InvalidJobError
from app.readers import pool as pool_module
from app.readers.pool import SHORT_BYTES, BytesSource, Kind, ReaderLostError, ReaderPool
from tests.integration.readers import works

FILE = BytesSource(b"abcdef")
PATIENT = 1000
"""Lets the limit on processor time end a reader, on any machine."""
DRAWS = Kind(1, 2**27, drawing="tests.integration.readers.works:prepare_drawing")


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[ReaderPool]:
    made = ReaderPool("tests.integration.readers.works:prepare")
    yield made
    await made.close()


def children() -> set[int]:
    return {each.pid for each in psutil.Process().children(recursive=True)}


def ended_soon(pids: set[int]) -> bool:
    """Whether these processes use no more of the processor."""
    processes = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, running = psutil.wait_procs(processes, timeout=0.3)
    return not running


class TestResults:
    @pytest.mark.parametrize("size", [0, 6, SHORT_BYTES + 1, 9_000_000])
    async def test_a_file_of_any_length_is_read(self, pool: ReaderPool, size: int) -> None:
        assert await pool.whole("a", BytesSource(b"x" * size), works.length) == str(size).encode()

    @pytest.mark.parametrize("length", [6, SHORT_BYTES + 6])
    async def test_any_place_of_it_is_read(self, pool: ReaderPool, length: int) -> None:
        data = BytesSource(b"abc" + b"x" * (length - 6) + b"def")
        assert await pool.whole("a", data, works.places) == b"defabc"

    async def test_each_result_is_answered(self, pool: ReaderPool) -> None:
        async with aclosing(pool.run("a", FILE, works.answers)) as results:
            assert await anext(results) == b"one"
            assert await results.asend(b"two") == b"twotwo"
            assert await results.asend(b"three") == b"three"

    async def test_a_child_reads_several_files_and_has_no_settings(
        self, pool: ReaderPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DATABASE_URL", "secret")
        assert await pool.whole("a", FILE, works.process) == await pool.whole("b", FILE, works.process)
        assert b"DATABASE_URL" not in await pool.whole("a", FILE, works.variables)
        assert int(await pool.whole("a", FILE, works.nice)) >= 5

    async def test_a_wrong_file_is_refused_with_place_and_reason(self, pool: ReaderPool) -> None:
        before = await pool.whole("a", FILE, works.process)
        with pytest.raises(InvalidJobError, match="/rows/2: is wrong"):
            await pool.whole("a", FILE, works.refuse)
        assert await pool.whole("a", FILE, works.process) == before


class TestLimits:
    @pytest.mark.parametrize("work", [works.take_memory, works.take_memory_at_once])
    async def test_a_file_that_takes_too_much_memory_is_refused(
        self, pool: ReaderPool, work: Callable[..., object]
    ) -> None:
        with pytest.raises(InvalidJobError, match="takes more than 120 MiB of memory to read"):
            await pool.whole("a", FILE, work)  # type: ignore[arg-type]
        assert await pool.whole("a", FILE, works.length) == b"6"

    async def test_a_file_that_takes_too_long_is_refused(
        self, pool: ReaderPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool_module, "CPU_SECONDS", 0.2)
        with pytest.raises(InvalidJobError, match="takes more than 1 s to read"):
            await pool.whole("a", FILE, works.wait)
        monkeypatch.setattr(pool_module, "WALL_FACTOR", PATIENT)
        with pytest.raises(InvalidJobError, match="of processor time to read"):
            await pool.whole("a", FILE, works.compute)

    async def test_its_reader_ends_before_anybody_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_module, "CPU_SECONDS", 0.2)
        monkeypatch.setattr(pool_module, "WALL_FACTOR", PATIENT)
        told: list[tuple[str, str, bool]] = []

        async def on_end(tenant: str, limit: str) -> None:
            working = {each for each in children() if each not in before}
            told.append((tenant, limit, await asyncio.to_thread(ended_soon, working)))

        pool = ReaderPool("tests.integration.readers.works:prepare", on_end)
        await pool.start()
        before = children()
        try:
            with pytest.raises(InvalidJobError, match="of processor time to read"):
                await pool.whole("a", FILE, works.compute)
        finally:
            await pool.close()
        assert told == [("a", "time", True)]


class TestEnds:
    async def test_a_file_that_crashes_two_readers_is_refused(self, pool: ReaderPool) -> None:
        with pytest.raises(InvalidJobError, match="it ended the process that reads it, twice"):
            await pool.whole("a", FILE, works.crash)
        assert await pool.whole("a", FILE, works.length) == b"6"

    @pytest.mark.parametrize("work", [works.crash_once, works.be_killed_once])
    async def test_a_file_whose_first_reader_ends_is_read_by_another(
        self, pool: ReaderPool, work: Callable[..., object], tmp_path: Path
    ) -> None:
        assert await pool.whole("a", FILE, work, str(tmp_path / "mark")) == b"read"  # type: ignore[arg-type]

    async def test_readers_that_something_else_ends_are_no_fault_of_the_file(self, pool: ReaderPool) -> None:
        with pytest.raises(ReaderLostError, match="try again"):
            await pool.whole("a", FILE, works.be_killed)

    async def test_a_reader_that_fails_refuses_the_file_and_its_log_line_has_no_text(
        self, pool: ReaderPool, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(InvalidJobError, match="its reader failed"):
            await pool.whole("a", FILE, works.fail)
        assert "abcdef" not in capsys.readouterr().out

    async def test_whoever_goes_ends_the_reader(self, pool: ReaderPool) -> None:
        async with aclosing(pool.run("a", FILE, works.begin_and_wait)) as results:
            reader = psutil.Process(int(await anext(results)))
            waiting = asyncio.ensure_future(anext(results))
            await asyncio.wait({waiting}, timeout=0.1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await asyncio.to_thread(reader.wait, 30)
        assert await pool.whole("a", FILE, works.length) == b"6"

    async def test_files_are_read_after_the_process_that_is_copied_has_ended(self, pool: ReaderPool) -> None:
        before = children()
        await pool.whole("a", FILE, works.length)
        for pid in children() - before:
            psutil.Process(pid).kill()
        assert await pool.whole("a", FILE, works.length) == b"6"

    async def test_all_end_with_the_pool(self) -> None:
        before = children()
        made = ReaderPool("tests.integration.readers.works:prepare")
        await made.whole("a", FILE, works.length)
        own = [psutil.Process(pid) for pid in children() - before]
        assert len(own) == 2
        await made.close()
        _, alive = await asyncio.to_thread(psutil.wait_procs, own, 30)
        assert all(each.status() == psutil.STATUS_ZOMBIE for each in alive)


class TestPlaces:
    async def test_another_tenants_file_is_read_beside_one_that_waits(self, pool: ReaderPool) -> None:
        first = [asyncio.create_task(pool.whole("a", FILE, works.wait)) for _ in range(5)]
        assert await pool.whole("b", FILE, works.length) == b"6"
        for each in first:
            each.cancel()
        await asyncio.gather(*first, return_exceptions=True)


class TestDrawing:
    async def test_a_child_that_draws_is_prepared_and_reads_no_file(self, pool: ReaderPool) -> None:
        drawer = await pool.whole("a", FILE, works.process, kind=DRAWS)
        assert await pool.whole("b", FILE, works.process, kind=DRAWS) == drawer
        assert await pool.whole("a", FILE, works.process) != drawer
        assert await pool.whole("a", FILE, works.prepared, kind=DRAWS) == b"yes"

    async def test_a_tenant_s_file_does_not_hold_up_its_drawing(self, pool: ReaderPool) -> None:
        reading = asyncio.create_task(pool.whole("a", FILE, works.wait))
        await asyncio.sleep(0)
        assert await pool.whole("a", FILE, works.length, kind=DRAWS) == b"6"
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

    async def test_an_idle_child_that_draws_ends(
        self, pool: ReaderPool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool_module, "IDLE_SECONDS", 0.1)
        drawer = psutil.Process(int(await pool.whole("a", FILE, works.process, kind=DRAWS)))
        reader = int(await pool.whole("a", FILE, works.process))
        await asyncio.to_thread(drawer.wait, 30)
        assert await pool.whole("a", FILE, works.length, kind=DRAWS) == b"6"
        assert int(await pool.whole("a", FILE, works.process)) == reader

    async def test_an_end_is_no_fault_of_a_file(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pool_module, "CPU_SECONDS", 0.2)
        monkeypatch.setattr(pool_module, "WALL_FACTOR", PATIENT)
        told: list[str] = []

        async def on_end(tenant: str, _: str) -> None:
            told.append(tenant)

        pool = ReaderPool("tests.integration.readers.works:prepare", on_end)
        try:
            with pytest.raises(InvalidJobError, match="of processor time"):
                await pool.whole("a", FILE, works.compute, kind=DRAWS)
        finally:
            await pool.close()
        assert told == []
