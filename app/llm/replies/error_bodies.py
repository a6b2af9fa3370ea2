"""What providers, routers and proxies put into the body of an error: their codes and their words, whatever encloses them.

Shapes, each from its public documentation or reports, checked 2026-11-22: OpenAI and Anthropic ``{"error": {…}}``; Gemini
``[{"error": {…, "status", "details"}}]`` (https://ai.google.dev/gemini-api/docs/troubleshooting); OpenRouter ``error.metadata.raw``
(https://openrouter.ai/docs/api/reference/errors-and-debugging); LiteLLM's codes that are statuses as text
(https://docs.litellm.ai/docs/exception_mapping); vLLM's and Mistral's error at the top level; FastAPI's ``{"detail": …}``; TGI's
and Ollama's ``{"error": "text"}``; AWS's ``{"message": …, "__type": …}``; Tencent's ``{"Response": {"Error": {"Code", "Message"}}}``
(https://www.tencentcloud.com/document/api/213/33281).
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_CODE = re.compile(r"[A-Za-z_][\w.-]{0,63}")
_NO_CODES = frozenset({"none", "null", "error", "unknown"})
_CODE_FIELDS = ("code", "type", "status", "error_type", "__type", "Code")
"""Where an error object has its codes, the most exact one first."""
_NUMBER_FIELDS = ("code", "status_code", "error_code")
_EVENT = re.compile(r"(?:event: ?\w+\s+)?data: ?(\{.*)")
_NUMBER = re.compile(r"\d{4,9}")
"""A numeric code; HTTP statuses have three digits."""
_WORD_FIELDS = (
    *(
        "message",
        "Message",
        "detail",
        "msg",
        "status_msg",
        "error_msg",
        "error_description",
        "error",
        "title",
    ),
    "base_resp",
)
MOST_BYTES = 64 * 1024
"""Of an error's body, what is read: all of it takes 0.8 s if it is as long as a reply may be."""
_MOST_NESTED = 4
"""Errors within errors that are unwrapped: a router's about a proxy's about a provider's."""


class Fault(NamedTuple):
    """What the body of an error says.

    Attributes:
        codes: The provider's codes, the most exact one first.
        unshown: Codes that are compared and not shown: numbers such as Zhipu's 1113, and Azure's in ``innererror``.
        words: What it says to people; empty where it says nothing.
        fields: The error object; empty where the body is text.
    """

    codes: tuple[str, ...]
    unshown: tuple[str, ...]
    words: str
    fields: Mapping[str, object]


def parsed(content: bytes) -> object:
    """Return the body of an error: its JSON, also as the first event of a stream; its text if it is no JSON, or too long."""
    text = content[:MOST_BYTES].decode("utf-8", "replace").strip()
    event = _EVENT.match(text)
    return _json(event[1] if event else text, text)


def read_fault(body: object) -> Fault:
    """What the body of an error says.

    Args:
        body: The parsed body, the error object in it, or text.
    """
    fields = _error_object(body)
    if not fields:
        return Fault((), (), _words(body), {})
    codes = [code for one in _nested(fields) for code in _codes(one)]
    unshown = [code for one in _nested(fields) for code in _unshown(one)]
    words = dict.fromkeys(words for one in _nested(fields) if (words := _words(one)))
    return Fault(tuple(codes), tuple(unshown), ": ".join(words), fields)


def retry_seconds(fault: Fault) -> float | None:
    """Seconds that Google's ``RetryInfo`` asks to wait; ``None`` where there is none."""
    for detail in _details(fault.fields):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and re.fullmatch(r"\d{1,6}(\.\d{1,9})?s", delay):
            return float(delay[:-1])
    return None


def enveloped(body: Mapping[str, object]) -> object:
    """Return the error that a body encloses; ``None`` if it encloses none."""
    response = body.get("Response")
    native = response.get("Error") if isinstance(response, dict) else None
    return body.get("error") or body.get("errors") or native


def _error_object(body: object) -> Mapping[str, object]:
    """The innermost object that the outer shape names as the error."""
    if isinstance(body, list):
        body = next((one for one in body if isinstance(one, dict)), None)
    if not isinstance(body, dict):
        return {}
    inner = enveloped(body)
    if isinstance(inner, list):
        inner = next((one for one in inner if isinstance(one, dict)), None)
    return inner if isinstance(inner, dict) else body


def _nested(fields: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """An error object, and those that it quotes: a router's of its provider, a proxy's in its message."""
    for _ in range(_MOST_NESTED):
        yield fields
        metadata = fields.get("metadata")
        quoted = metadata.get("raw") if isinstance(metadata, dict) else None
        if quoted is None:
            quoted = fields.get("message")
        inner = _error_object(_json(quoted, None) if isinstance(quoted, str) else quoted)
        if not inner:
            if isinstance(metadata, dict) and isinstance(quoted, str) and quoted != fields.get("message"):
                yield {"message": quoted}
            return
        fields = inner


def _codes(fields: Mapping[str, object]) -> Iterator[str]:
    """An error object's codes, the most exact one first. Statuses as numbers or text are none."""
    details = fields.get("details")
    candidates = [details.get("error_code") if isinstance(details, dict) else None]
    candidates += [detail.get("reason") for detail in _details(fields)]
    candidates += [fields.get(name) for name in _CODE_FIELDS]
    for code in candidates:
        if isinstance(code, str) and _CODE.fullmatch(code) and code.lower() not in _NO_CODES:
            yield code


def _unshown(fields: Mapping[str, object]) -> Iterator[str]:
    """Yield numeric codes, which MiniMax has below ``base_resp``, and Azure's, which LiteLLM moves down one level."""
    for holder in (fields, fields.get("base_resp")):
        if isinstance(holder, dict):
            values = [holder.get(name) for name in _NUMBER_FIELDS]
            yield from (str(value) for value in values if _NUMBER.fullmatch(str(value)))
    for holder in (fields, fields.get("provider_specific_fields")):
        inner = holder.get("innererror") if isinstance(holder, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("code"), str):
            yield inner["code"]


def _details(fields: Mapping[str, object]) -> list[Mapping[str, object]]:
    details = fields.get("details")
    return [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []


def _words(value: object) -> str:
    """What a part of an error says: text, validation errors with their places, or what an object has as its message."""
    if isinstance(value, str):
        return "" if isinstance(_json(value, None), dict | list) else value
    if isinstance(value, list):
        return "; ".join(words for one in value[:3] if (words := _words(one)))
    if not isinstance(value, dict):
        return ""
    words = next((words for name in _WORD_FIELDS if (words := _words(value.get(name)))), "")
    place = value.get("loc")
    if words and isinstance(place, list):
        return f"{'.'.join(str(part) for part in place)}: {words}"
    return words


def _json(text: str, otherwise: object) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
    return found
