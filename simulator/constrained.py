"""Constrained replies, as servers enforce them: whatever a model would write, only numbers of the request's schema come back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from simulator.conversation import Reply


class Constraint(NamedTuple):
    """What a request allows.

    Attributes:
        numbers: The numbers.
        names: Fields of a JSON object, each with a number; none for a bare number.
    """

    numbers: Sequence[int]
    names: Sequence[str]


def read_constraint(payload: object) -> Constraint | None:
    """Return the constraint of a request's `response_format` (OpenAI) or `output_config` (Anthropic), if it has one."""
    schema = _at(payload, "response_format", "json_schema", "schema") or _at(
        payload, "output_config", "format", "schema"
    )
    if not isinstance(schema, Mapping):
        return None
    fields = cast("Mapping[str, Mapping[str, Sequence[int]]]", schema.get("properties", {}))
    numbers = next(iter(fields.values()))["enum"] if fields else cast("Sequence[int]", schema["enum"])
    return Constraint(numbers, list(fields))


def constrain(reply: Reply, constraint: Constraint) -> Reply:
    """Return a reply in the form that a request allows: the judge's number, or the true one where the judge gave none."""
    sentences = cast("list[dict[str, object]]", reply.record.get("sentences", [reply.record]))
    for said in sentences:
        if said.get("given") is None:
            said["given"] = said.get("truth", constraint.numbers[0])
    given = [said["given"] for said in sentences]
    text = json.dumps(dict(zip(constraint.names, given, strict=True))) if constraint.names else str(given[0])
    return replace(reply, text=text, finish="stop")


def _at(value: object, *path: str) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
