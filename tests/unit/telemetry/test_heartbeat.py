"""The heartbeat is the loop's: it stops when the loop does."""

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from app.telemetry import heartbeat
from app.telemetry.heartbeat import beating

LONG_AGO = 1_000_000.0


def age(file: Path) -> None:
    os.utime(file, (LONG_AGO, LONG_AGO))


def is_young(file: Path) -> bool:
    return file.exists() and file.stat().st_mtime != LONG_AGO


async def touched(file: Path) -> None:
    async with asyncio.timeout(60):
        while not is_young(file):  # noqa: ASYNC110 - what is waited for is a file
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)


async def test_the_file_is_there_at_once_and_touched_again_and_again(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    async with beating(file):
        assert is_young(file)
        for _ in range(3):
            age(file)
            await touched(file)
    age(file)
    await asyncio.sleep(0.05)
    assert not is_young(file)  # nothing beats on behind its back


async def test_a_loop_that_stands_still_touches_nothing(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    async with beating(file):
        await asyncio.sleep(0)
        age(file)
        time.sleep(0.1)  # noqa: ASYNC251 - the fault
        assert not is_young(file)
        await touched(file)


async def test_a_file_that_is_removed_comes_back_and_a_missing_directory_ends_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "memory"
    directory.mkdir()
    file = directory / "heartbeat"
    async with beating(file):
        file.unlink()
        directory.rmdir()
        await asyncio.sleep(0.05)
        directory.mkdir()
        await touched(file)


async def test_a_file_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with beating(tmp_path / "missing" / "heartbeat"):
            pass


async def test_without_a_file_nothing_beats() -> None:
    async with beating(None):
        assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(("seconds_ago", "alive"), [(0, True), (20, True), (40, False)])
def test_the_probe_of_the_compose_file_tells_young_from_old(
    tmp_path: Path, seconds_ago: int, *, alive: bool
) -> None:
    file = tmp_path / "heartbeat"
    file.touch()
    then = time.time() - seconds_ago
    os.utime(file, (then, then))
    probe = f"test -n \"$(find {file} -newermt '-30 seconds')\""
    assert (subprocess.run(["/bin/sh", "-c", probe], check=False).returncode == 0) is alive
