"""Keys that must turn up nowhere, and what a provider does with them that repeats all it is sent."""

import base64
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

RANDOM = "q7Zf3Lw9KxTb2YhVn5RcD8sJmA0uEgWi4kPo"
PIECE = 12


def traces(random: str = RANDOM) -> set[str]:
    """Everything by which a key gives itself away: any 12 characters of its random part, raw, in a URL and in base64."""
    forms = {random, quote(random, safe="")}
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + random.encode() + b"\0\0\0").decode()
        forms.add(encoded[4 if before else 0 : -8])
        forms.add(
            base64.urlsafe_b64encode(b"\0" * before + random.encode() + b"\0\0\0").decode()[
                4 if before else 0 : -8
            ]
        )
    return {form[n : n + PIECE] for form in forms for n in range(len(form) - PIECE + 1)}


def found_in(text: str, random: str = RANDOM) -> list[str]:
    """The traces of a key in a text."""
    return [text[max(0, n - 40) : n + 40] for n in range(len(text)) if text[n : n + PIECE] in _of(random)]


_known: dict[str, set[str]] = {}


def _of(random: str) -> set[str]:
    if random not in _known:
        _known[random] = traces(random)
    return _known[random]


def texts_of(content: bytes) -> Iterator[str]:
    """All that a file says, and the files in it."""
    import pyarrow.parquet as pq

    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            for inner in packed.namelist():
                yield inner
                yield from texts_of(packed.read(inner))
    elif content.startswith(b"PAR1"):
        yield str(pq.read_table(io.BytesIO(content)).to_pylist())
    else:
        yield content.decode()


def spellings(key: str) -> Iterator[str]:
    """What a provider makes of a key that it shows."""
    yield key
    yield f"Bearer {key}"
    yield f"{key[:18]}{'*' * 10}{key[-14:]}"
    yield base64.b64encode(f"Authorization: Bearer {key}".encode()).decode()
    yield quote(f"Bearer {key}+/=", safe="")
    yield json.dumps({"headers": {"authorization": f"Bearer {key}"}})


def openai_reply(text: str, **changes: Any) -> dict[str, Any]:
    """A good reply of OpenAI's."""
    message = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {
        "model": "m",
        "choices": [message],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    } | changes


def anthropic_reply(text: str, **changes: Any) -> dict[str, Any]:
    """A good reply of Anthropic's."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "type": "message",
        "model": "m",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": usage,
    } | changes
