"""What both adapters share between a reply and a ``ChatReply``."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from app.domain.model import FinishReason, Usage
from app.llm import errors
from app.llm.texts import storable
from app.llm.transports.reply import Reply

MOST_TOKENS = 2**31 - 1


def json_object(reply: Reply) -> dict[str, Any]:
    """The JSON object of a reply.

    Raises:
        ModelCallError: If there is none, as when a proxy's page or half a reply came.
    """
    try:
        body = from_json(reply.body)
    except ValueError:
        body = _leniently(reply.body)
    if isinstance(body, dict):
        return body
    raise errors.malformed(f"the reply is no JSON object ({len(reply.body)} bytes)", reply.status)


def _leniently(content: bytes) -> object:
    """What the quicker parser does not take though Python's does: lone surrogates, other encodings, deep nesting."""
    try:
        parsed: object = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return parsed


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one where there is something else."""
    return value if isinstance(value, dict) else {}


def short_text(value: object) -> str | None:
    """An identifier from a reply or its headers, cut to 200 characters; ``None`` where there is no text."""
    return storable(value[:200]) if isinstance(value, str) and value else None


def finish_reason(value: object, known: Mapping[str, FinishReason]) -> FinishReason:
    """A provider's reason in our vocabulary; ``OTHER`` where it is missing or new."""
    return known.get(value, FinishReason.OTHER) if isinstance(value, str) else FinishReason.OTHER


def usage(
    input_tokens: object, output_tokens: object, cached_input_tokens: object, written_input_tokens: int = 0
) -> Usage | None:
    """Token counts of a reply; ``None`` unless input and output are both there."""
    read, returned, cached = count(input_tokens), count(output_tokens), count(cached_input_tokens)
    if read is None or returned is None:
        return None
    cached = min(cached or 0, read)
    return Usage(read, returned, cached, min(written_input_tokens, read - cached))


def count(value: object) -> int | None:
    """A number of tokens from a reply; ``None`` where it is none that a call can have."""
    # What JSON has: no subclass of a number but true and false, which are none.
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None
