"""Lines of a batch's results, as a server may send them."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.llm import batch_wire
from app.llm.batch_wire import lines
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
