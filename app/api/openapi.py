"""What the OpenAPI document says that routes answer with."""

from typing import Any

from pydantic import BaseModel

from app.api.problems import Problem

Responses = dict[int | str, dict[str, Any]]

_PROBLEM: dict[str, Any] = {"model": Problem, "content": {"application/problem+json": {}}}
PROBLEMS: Responses = dict.fromkeys((400, 413, 415, 422, 503), _PROBLEM)
NOT_FOUND: Responses = {404: _PROBLEM}
CONFLICT: Responses = {409: _PROBLEM}


def answers_with(model: type[BaseModel], status: int = 200) -> Responses:
    """A route's answer when all goes well."""
    return {status: {"model": model}}
