"""Reads bodies as JSON and nothing else: no repeated keys, no NaN, no lone surrogates, no bottomless nesting."""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import numpy as np
from fastapi import Request, Response
from fastapi.routing import APIRoute

from app.api.access import Caller
from app.api.problems import ProblemError

JSON_TYPE = r"application/([\w.-]+\+)?json"

MAX_DEPTH = 64
"""Levels of objects and lists in a body."""
LARGE_BYTES = 64 * 1024
"""A body of so many is parsed on a thread, which gives way to other requests; that takes longer than to parse a small one."""
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def loads(body: bytes) -> Any:
    """Parses a body.

    Python's parser takes the last of repeated keys, which would silently drop half of a contradictory
    ``{"E": "low", "E": "high"}``; here that is an error.

    Raises:
        json.JSONDecodeError: If it is not JSON.
        ProblemError: 400, if it is JSON only by Python's leave.
    """
    try:
        text = body.decode()
        if _depth(body) > MAX_DEPTH:
            raise ProblemError(
                HTTPStatus.BAD_REQUEST,
                "malformed_json",
                f"the body is nested deeper than {MAX_DEPTH} levels",
            )
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
        if _ESCAPED_SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()  # fails where one stands alone
    except UnicodeDecodeError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", "the body is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "malformed_json", "the body holds a lone surrogate, which is no text"
        ) from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # integers of thousands of digits
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", f"the body: {error}") from error
    return value


def _depth(body: bytes) -> int:
    """How deep a body is nested at most; what follows a mistake in it does not matter."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return 0
    steps = _TEXT.sub(b"", body).translate(_STEPS, _NO_BRACKETS)
    return int(np.frombuffer(steps, np.int8).cumsum(dtype=np.int32).max(initial=0))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key, count in counts.items() if count > 1)
        raise ProblemError(
            HTTPStatus.BAD_REQUEST,
            "repeated_key",
            f"the key {repeated!r} stands more than once in one object",
        )
    return found


def _constant(name: str) -> Any:
    raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", f"{name} is not JSON")


def _float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        detail = f"the number {literal[:20]} is too large"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", detail)
    return value


class StrictRequest(Request):
    """A request whose body is read within its limits (:mod:`app.api.limits`), and by :func:`loads`."""

    async def body(self) -> bytes:
        """The body, if it is not too long."""
        if not hasattr(self, "_body"):
            caller: Caller | None = getattr(self.state, "caller", None)
            self._body = await self.state.upload.read(self, None if caller is None else caller.sender)
        return self._body

    async def json(self) -> Any:
        """The body as JSON; see :func:`loads`."""
        if not hasattr(self, "_json"):
            body = await self.body()
            self._json = loads(body) if len(body) < LARGE_BYTES else await asyncio.to_thread(loads, body)
        return self._json

    def check_media_type(self) -> None:
        """Refuses a body that does not say that it is JSON."""
        essence = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not re.fullmatch(JSON_TYPE, essence):
            raise ProblemError(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "send the body as application/json",
            )


class StrictRoute(APIRoute):
    """A route whose bodies are bounded, say that they are JSON, and are read by :func:`loads`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that reads its body strictly."""
        handle = super().get_route_handler()
        takes_body = self.body_field is not None

        async def strict(request: Request) -> Response:
            strict_request = StrictRequest(request.scope, request.receive)
            if takes_body:
                strict_request.check_media_type()
            return await handle(strict_request)

        return strict
