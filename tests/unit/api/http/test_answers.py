"""Answers are limited by bytes, and a download that its reader leaves keeps nothing."""

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from app.api.http.answers import Answers, Download, Reader
from app.api.http.problems import ProblemError

ONE, OTHER = Reader("one"), Reader("other")
VISITOR = Reader("one", "link_1")


class Texts(list[str]):
    """A page of texts to which a weak reference is possible."""


@pytest.mark.parametrize("leaves_while", ["sending", "reading"])
async def test_texts_of_a_reader_who_leaves_are_freed_without_a_look_for_cycles(leaves_while: str) -> None:
    pages: list[weakref.ref[Texts]] = []
    begun, left = asyncio.Event(), asyncio.Event()

    async def wait_for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def file() -> AsyncGenerator[bytes]:
        page = Texts(["text"])
        pages.append(weakref.ref(page))
        yield page[0].encode()
        await wait_for_ever()
        yield page[0].encode()

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if leaves_while == "sending" and message["type"] == "http.response.body":
            await wait_for_ever()

    scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
    gc.disable()
    try:
        answering = asyncio.create_task(Download(file())(scope, receive, send))
        await begun.wait()
        assert pages[0]() is not None
        left.set()
        await answering
        assert pages[0]() is None
    finally:
        gc.enable()


class TestBytes:
    def test_of_a_tenant_are_half_of_all(self) -> None:
        answers = Answers(100, 1, lambda: None)
        with answers.bytes(ONE, 50), pytest.raises(ProblemError) as refused, answers.bytes(ONE, 1):
            pass
        assert (refused.value.status_code, refused.value.code) == (429, "too_many_answers")

    def test_of_visitors_are_not_their_tenants(self) -> None:
        answers = Answers(100, 1, lambda: None)
        with answers.bytes(VISITOR, 25), answers.bytes(ONE, 50):
            for visitor in (VISITOR, Reader("one", "link_2")):
                with pytest.raises(ProblemError), answers.bytes(visitor, 1):
                    pass

    def test_a_first_answer_of_any_length_is_sent(self) -> None:
        ended: list[str] = []
        answers = Answers(100, 1, lambda: ended.append("ended"))
        with answers.bytes(ONE, 1_000):
            assert not ended
        assert ended == ["ended"]

    def test_first_answers_may_take_as_much_again(self) -> None:
        answers = Answers(100, 1, lambda: None)
        with answers.bytes(ONE, 100):
            with answers.bytes(OTHER, 100), pytest.raises(ProblemError) as refused:
                answers.bytes(Reader("third"), 1).__enter__()
            assert (refused.value.status_code, refused.value.code) == (503, "too_many_answers")
            with answers.bytes(OTHER, 100):
                pass
