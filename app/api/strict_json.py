"""Reads bodies as JSON and nothing else: no repeated keys, no NaN, no bottomless nesting."""

import json
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from app.api.problems import ProblemError


def loads(body: bytes) -> Any:
    """Parses a body.

    Python's parser takes the last of repeated keys, which would silently drop half of a contradictory
    ``{"E": "low", "E": "high"}``; here that is an error.

    Raises:
        json.JSONDecodeError: If it is not JSON.
        ProblemError: 400, if it is JSON only by Python's leave.
    """
    try:
        return json.loads(body, object_pairs_hook=_object, parse_constant=_constant)
    except UnicodeDecodeError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", "the body is not UTF-8") from error
    except RecursionError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", "the body is nested too deep") from error
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # integers of thousands of digits
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", f"the body: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ProblemError(
            HTTPStatus.BAD_REQUEST,
            "repeated_key",
            f"the key {repeated!r} stands more than once in one object",
        )
    return found


def _constant(name: str) -> Any:
    raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_json", f"{name} is not JSON")


class _StrictRequest(Request):
    async def json(self) -> Any:
        return loads(await self.body())


class StrictRoute(APIRoute):
    """A route whose bodies are read by :func:`loads`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a request that reads its body strictly."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strict
