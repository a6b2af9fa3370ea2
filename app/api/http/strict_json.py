"""Reads bodies as JSON and nothing else: no repeated keys, no NaN, no lone surrogates, no bottomless nesting."""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from http import HTTPStatus
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError

from app.api.http.access import Caller, check_scope
from app.api.http.problems import ProblemError, invalid_body
from app.domain.judging.stepwise_json import StepwiseDecoder, ascii_digits
from app.services.long_texts import on_a_thread

T = TypeVar("T")

JSON_TYPE = r"application/([\w.-]+\+)?json"

MAX_DEPTH = 64
"""Levels of objects and lists in a body."""
MAX_KEYS = 50_000
"""Fields of one object in a body: what schemas take has 10,000 at most."""
MAX_NESTED = 500_000
"""Lists and objects in a body: 200,000 texts are as many objects."""
LARGE_BYTES = 32 * 1024
"""A body of so many is parsed and checked on a thread, in pieces so small that it gives way to other requests between them; parsing a small
one takes less time than going to a thread."""
TURN_BYTES = 1024 * 1024
"""Bodies of one tenant that are as long are parsed and handled one by one."""
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def loads(body: bytes) -> Any:
    """Parses a body. Python's lock is given away every few microseconds while a large one is parsed.

    Python's parser takes the last of repeated keys, which would silently drop half of a contradictory
    ``{"E": "low", "E": "high"}``; here that is an error.

    Raises:
        json.JSONDecodeError: If it is not JSON.
        ProblemError: 400, if it is JSON only by Python's leave.
    """
    try:
        text = body.decode()
        if len(body) < LARGE_BYTES:
            value = _loads_at_once(text, body)
        else:
            value = _StrictDecoder(surrogates=_ESCAPED_SURROGATE.search(body) is not None).decode(text)
    except UnicodeDecodeError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", "the body is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "malformed_json", "the body contains a lone surrogate"
        ) from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # integers of thousands of digits
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", f"the body: {error}") from error
    return value


def _loads_at_once(text: str, body: bytes) -> Any:
    if _depth(body) > MAX_DEPTH:
        raise _too_deep()
    value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    if _ESCAPED_SURROGATE.search(body):
        json.dumps(value, ensure_ascii=False).encode()  # fails where one stands alone
    return value


class _StrictDecoder(StepwiseDecoder):
    """The same for a large body.

    Args:
        surrogates: Whether texts may hold lone ones.
    """

    def __init__(self, *, surrogates: bool) -> None:
        self._depth = 0
        super().__init__(
            _text if surrogates else scanstring,
            MAX_NESTED,
            object_pairs_hook=_object_of_texts if surrogates else _object,
            parse_constant=_constant,
            parse_float=_float,
        )

    def nested(self, parse: Callable[..., Any]) -> Callable[..., Any]:
        """Counts levels, too."""
        parse = super().nested(parse)

        def deeper(*given: Any) -> Any:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise _too_deep()
            found = parse(*given)
            self._depth -= 1
            return found

        return deeper


def _text(*given: Any) -> tuple[str, int]:
    found, end = scanstring(*given)
    found.encode()  # fails where a surrogate stands alone
    return found, end


def _object_of_texts(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, _ in pairs:
        key.encode()
    return _object(pairs)


def _too_deep() -> ProblemError:
    detail = f"the body is nested deeper than {MAX_DEPTH} levels"
    return ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", detail)


def _depth(body: bytes) -> int:
    """How deep a body is nested at most; what follows a mistake in it does not matter."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return 0
    steps = _TEXT.sub(b"", body).translate(_STEPS, _NO_BRACKETS)
    return int(np.frombuffer(steps, np.int8).cumsum(dtype=np.int32).max(initial=0))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_KEYS:
        detail = f"an object may have at most {MAX_KEYS:,} fields"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", detail)
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key, count in counts.items() if count > 1)
        raise ProblemError(
            HTTPStatus.BAD_REQUEST,
            "repeated_key",
            f"the key {repeated!r} appears more than once in one object",
        )
    return found


def _constant(name: str) -> Any:
    raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", f"{name} is not JSON")


def _float(literal: str) -> float:
    value = float(ascii_digits(literal))
    if math.isinf(value):
        detail = f"the number {literal[:20]} is too large"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", detail)
    return value


_turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
"""Locks by tenant; each exists while a request uses it."""


class StrictRequest(Request):
    """A request whose body is read within its limits (:mod:`app.api.http.limits`), and by :func:`loads`.

    Attributes:
        turn: Holds the tenant's turn from the parsing of a body of :data:`TURN_BYTES` to the end of the request: parsed, a body takes
            thirty times its length.
    """

    turn: AsyncExitStack
    _has_turn = False
    _checked: Any = None

    async def body(self) -> bytes:
        """The body, if it is not too long."""
        if not hasattr(self, "_body"):
            caller: Caller | None = getattr(self.state, "caller", None)
            self._body = await self.state.upload.read(self, None if caller is None else caller.sender)
        return self._body

    async def json(self) -> Any:
        """The body as JSON, see :func:`loads`; a large one that :meth:`check` has found right, as what that made of it."""
        return self._checked if self._checked is not None else await self.sent()

    async def sent(self) -> Any:
        """The body as JSON, as it was sent."""
        if not hasattr(self, "_json"):
            if not self._has_turn and len(await self.body()) >= TURN_BYTES:
                lock = _turns.setdefault(self._owner, asyncio.Lock())
                await self.turn.enter_async_context(lock)
                self._has_turn = True
            self._json = await self.make(partial(loads, await self.body()))
        return self._json

    async def check(self, schema: TypeAdapter[Any]) -> None:
        """Checks a large body on a thread; what the framework does would hold up the event loop. A small one is left to it.

        Raises:
            ProblemError: If it is no JSON of ours, or who sent it may not.
            fastapi.exceptions.RequestValidationError: If it is wrong.
        """
        if len(await self.body()) >= LARGE_BYTES:
            try:
                sent = await self.sent()
            except json.JSONDecodeError:
                return  # which the framework answers
            await check_scope(self)  # before what is wrong is told, as of a small one
            self._checked = await self.make(partial(_checked, schema, sent))

    async def make(self, work: Callable[[], T]) -> T:
        """What a function makes of the body: of a large one on a thread."""
        if len(await self.body()) < LARGE_BYTES:
            return work()
        return await on_a_thread(self._owner, work)

    @property
    def _owner(self) -> str:
        caller: Caller | None = getattr(self.state, "caller", None)
        return "" if caller is None else caller.tenant

    def check_media_type(self) -> None:
        """Refuses a body that does not say that it is JSON."""
        essence = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not re.fullmatch(JSON_TYPE, essence):
            raise ProblemError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "send the body as application/json",
            )


def _checked(schema: TypeAdapter[Any], sent: Any) -> Any:
    """What a schema makes of a body; CPU only."""
    try:
        return schema.validate_python(
            sent, from_attributes=True
        )  # as the framework, which so words errors otherwise
    except ValidationError as error:
        raise invalid_body(error, sent) from error


class StrictRoute(APIRoute):
    """A route whose bodies are bounded, say that they are JSON, and are read by :func:`loads`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that reads its body strictly."""
        handle = super().get_route_handler()
        field = self.body_field
        schema: TypeAdapter[Any] | None = None
        if field is not None:
            schema = TypeAdapter(field.field_info.annotation or Any)

        async def strict(request: Request) -> Response:
            strict_request = StrictRequest(request.scope, request.receive)
            async with AsyncExitStack() as strict_request.turn:
                if schema is not None:
                    strict_request.check_media_type()
                    await strict_request.check(schema)
                return await handle(strict_request)

        return strict
