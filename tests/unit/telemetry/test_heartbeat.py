"""The heartbeat is the loop's: it stops when the loop does."""

import asyncio
import os
from pathlib import Path

import pytest

from app.telemetry.heartbeat import BEAT_SECONDS, beating
from tests.virtual_time import VirtualTimeLoop

pytestmark = pytest.mark.usefixtures("virtual_time")

LONG_AGO = 1_000_000.0


def age(file: Path) -> None:
    os.utime(file, (LONG_AGO, LONG_AGO))


def is_young(file: Path) -> bool:
    return file.exists() and file.stat().st_mtime != LONG_AGO


async def touched(file: Path) -> None:
    async with asyncio.timeout(60):
        while not is_young(file):  # noqa: ASYNC110 - what is waited for is a file
            await asyncio.sleep(BEAT_SECONDS)


async def test_the_file_is_there_at_once_and_touched_again_and_again(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    async with beating(file):
        assert is_young(file)
        for _ in range(3):
            age(file)
            await touched(file)
    age(file)
    await asyncio.sleep(2 * BEAT_SECONDS)
    assert not is_young(file)  # nothing beats on behind its back


async def test_a_loop_that_stands_still_touches_nothing(
    tmp_path: Path, virtual_time: VirtualTimeLoop
) -> None:
    file = tmp_path / "heartbeat"
    async with beating(file):
        await asyncio.sleep(0)
        age(file)
        virtual_time.stall(10 * BEAT_SECONDS)
        assert not is_young(file)
        await touched(file)


async def test_a_file_that_is_removed_comes_back_and_a_missing_directory_ends_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "memory"
    directory.mkdir()
    file = directory / "heartbeat"
    async with beating(file):
        file.unlink()
        directory.rmdir()
        await asyncio.sleep(2 * BEAT_SECONDS)
        directory.mkdir()
        await touched(file)


async def test_a_file_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with beating(tmp_path / "missing" / "heartbeat"):
            pass


async def test_without_a_file_nothing_beats() -> None:
    async with beating(None):
        assert len(asyncio.all_tasks()) == 1
