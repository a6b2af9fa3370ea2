"""Lines of a batch's results, as a server may send them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.llm.batches import batch_wire
from app.llm.batches.batch_wire import answers_in, lines, object_of
from app.llm.transports.http1 import MAX_BODY_BYTES

SHORT = 5


async def read(pieces: list[bytes]) -> list[str]:
    async def sent() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [line async for line in lines(sent())]


class TestLines:
    @given(st.lists(st.text("ab\n", max_size=12).map(str.encode), max_size=12))
    async def test_those_that_are_too_long_are_left_out_however_they_come(self, pieces: list[bytes]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch_wire, "MAX_BODY_BYTES", SHORT)
            found = await read(pieces)
        assert found == [line for line in b"".join(pieces).decode().split("\n") if len(line) <= SHORT]

    async def test_the_longest_reply_is_no_line_too_long(self) -> None:
        longest = b"a" * MAX_BODY_BYTES
        found = await read([b"x\n", longest, b"\n", longest + b"a", b"a", b"\ny"])
        assert [len(line) for line in found] == [1, MAX_BODY_BYTES, 1]


class TestAnswers:
    async def test_long_ones_are_read_as_short_ones(self) -> None:
        for size in (1, 200_000):
            line = json.dumps({"custom_id": "one", "response": {"text": "é" * size, "number": 0.1}})
            assert await answers_in(line) == [("one", line)]
            assert object_of(line) == json.loads(line)

    async def test_what_no_reply_has_is_no_answer(self) -> None:
        for line in (
            "[" * 200_000,
            '{"custom_id": "one", "other": [' + "[]," * 200_000 + "1]}",
            "x" * 200_000,
        ):
            assert await answers_in(line) == []
            assert object_of(line) == {}

    async def test_others_run_meanwhile(self) -> None:
        line = json.dumps({"custom_id": "one", "other": [1] * 500_000})
        begun, longest = time.process_time(), 0.0
        reading = asyncio.create_task(answers_in(line))
        while not reading.done():
            turn = time.process_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.process_time() - turn)
        assert await reading == [("one", line)]
        assert longest < (time.process_time() - begun) / 2  # in CPU time, so that other programs do not count
