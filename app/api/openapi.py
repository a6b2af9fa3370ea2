"""What the OpenAPI document says that routes answer with."""

from typing import Any

from pydantic import BaseModel

from app.api.problems import Problem

Responses = dict[int | str, dict[str, Any]]

_PROBLEM: dict[str, Any] = {"model": Problem, "content": {"application/problem+json": {}}}
PROBLEMS: Responses = dict.fromkeys((400, 413, 415, 422, 503), _PROBLEM)
NOT_FOUND: Responses = {404: _PROBLEM}
CONFLICT: Responses = {409: _PROBLEM}
TOO_OFTEN: Responses = {429: _PROBLEM}


def described_body(model: type[BaseModel], *others: str) -> dict[str, Any]:
    """What to add to a route that reads its body itself.

    Args:
        model: What the body is as JSON.
        others: Further media types that it may have.
    """
    schema = model.model_json_schema()
    known = schema.pop("$defs", {})

    def whole(node: Any) -> Any:
        if isinstance(node, list):
            return [whole(member) for member in node]
        if not isinstance(node, dict):
            return node
        rest = {name: whole(member) for name, member in node.items() if name != "$ref"}
        return whole(known[node["$ref"].rpartition("/")[2]]) | rest if "$ref" in node else rest

    text = {"schema": {"type": "string"}}
    content = {"application/json": {"schema": whole(schema)}} | dict.fromkeys(others, text)
    return {"requestBody": {"required": True, "content": content}}


def answers_with(model: type[BaseModel], status: int = 200) -> Responses:
    """A route's answer when all goes well."""
    return {status: {"model": model}}
