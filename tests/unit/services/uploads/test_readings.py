"""Files are read beside the requests that ask for it, once, and told to whoever asks again."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from app.services.uploads.readings import AT_ONCE, GiveWay, Readings

SOON, LONG = 0.01, 30.0


class Files:
    """Files whose reading ends when it is told to."""

    def __init__(self) -> None:
        self.ends = asyncio.Event()
        self.read: list[str] = []

    def of(self, what: str, error: Exception | None = None) -> Callable[[GiveWay], Coroutine[Any, Any, str]]:
        async def work(_give_way: GiveWay) -> str:
            self.read.append(what)
            await self.ends.wait()
            if error is not None:
                raise error
            return what

        return work


async def test_whoever_comes_again_is_told_what_was_found_and_it_is_read_once() -> None:
    readings, files = Readings[str](LONG), Files()
    assert await readings.read("t", "a", 1, files.of("a"), SOON) is None
    files.ends.set()
    for _ in range(2):
        ended = await readings.read("t", "a", 1, files.of("a"), LONG)
        assert ended is not None
        assert ended.result() == "a"
    assert files.read == ["a", "a"], "what was told is read anew, as it may have changed"


async def test_what_is_asked_otherwise_is_read_after_it() -> None:
    readings, files = Readings[str](LONG), Files()
    assert await readings.read("t", "a", 1, files.of("first"), SOON) is None
    assert await readings.read("t", "a", 2, files.of("second"), SOON) is None
    assert files.read == ["first"]
    files.ends.set()
    ended = await readings.read("t", "a", 2, files.of("second"), LONG)
    assert ended is not None
    assert (ended.result(), files.read) == ("second", ["first", "second"])


async def test_another_tenant_is_not_told_what_a_file_of_that_id_has() -> None:
    readings, files = Readings[str](LONG), Files()
    assert await readings.read("t", "a", 1, files.of("theirs"), SOON) is None
    files.ends.set()
    ended = await readings.read("other", "a", 1, files.of("none"), LONG)
    assert ended is not None
    assert ended.result() == "none"


async def test_of_two_that_wait_for_a_reading_the_second_waits_for_the_first_too() -> None:
    readings, files = Readings[str](LONG), Files()
    assert await readings.read("t", "a", 1, files.of("first"), SOON) is None
    waiting = [asyncio.create_task(readings.read("t", "a", 2, files.of("second"), LONG)) for _ in range(2)]
    for _ in range(10):
        await asyncio.sleep(0)
    files.ends.set()
    ended = await asyncio.gather(*waiting)
    assert [each.result() for each in ended if each is not None] == ["second", "second"]
    assert files.read == ["first", "second"]


async def test_an_error_is_told_to_whoever_asks_and_what_nobody_asks_for_is_forgotten() -> None:
    readings, files = Readings[str](), Files()
    files.ends.set()
    ended = await readings.read("t", "a", 1, files.of("a", ValueError("wrong")), LONG)
    assert ended is not None
    with pytest.raises(ValueError, match="wrong"):
        ended.result()
    files.ends.clear()
    assert await readings.read("t", "b", 1, files.of("b"), SOON) is None
    files.ends.set()
    for _ in range(10):
        await asyncio.sleep(0)
    ended = await readings.read("t", "b", 1, files.of("b"), LONG)
    assert ended is not None
    assert files.read == ["a", "b", "b"]


async def test_few_are_read_at_a_time_and_all_end_with_the_process() -> None:
    readings, files = Readings[str](LONG), Files()
    for n in range(AT_ONCE + 2):
        assert await readings.read(str(n), str(n), 1, files.of(str(n)), SOON) is None
    assert len(files.read) == AT_ONCE
    await readings.close()
    ended = await readings.read("0", "0", 1, files.of("0"), LONG)
    assert ended is not None
    assert ended.cancelled()


async def test_long_files_of_others_give_way_and_go_on_afterwards() -> None:
    readings, read = Readings[str](turn_seconds=0), list[str]()
    ends = asyncio.Event()

    def of(what: str) -> Callable[[GiveWay], Coroutine[Any, Any, str]]:
        async def work(give_way: GiveWay) -> str:
            read.append(what)
            while not ends.is_set():
                await asyncio.sleep(0)
                give_way()
            return what

        return work

    for n in range(AT_ONCE):
        assert await readings.read(str(n), str(n), 1, of(str(n)), SOON) is None
    assert read == ["0", "1"], "nobody waits, so nobody gives way"
    assert await readings.read("third", "third", 1, of("third"), SOON) is None
    assert set(read[2:]) == {"third", "0", "1"}
    ends.set()
    ended = [await readings.read(each, each, 1, of(each), LONG) for each in ("0", "1", "third")]
    assert [each.result() for each in ended if each is not None] == ["0", "1", "third"]
