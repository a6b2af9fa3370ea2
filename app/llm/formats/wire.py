"""What both adapters share between a reply and a ``ChatReply``."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from app.domain.judging.stepwise_json import StepwiseDecoder
from app.domain.providers.model import FinishReason
from app.llm.replies import errors
from app.llm.replies.texts import storable
from app.llm.replies.transport_reply import Reply

MOST_FIELDS, MOST_NESTED = 50_000, 100_000
"""Fields of one object in a long reply, and lists and objects in all of it: to make, or free, a million at once takes 0.1 to 0.3 s, in
which no other thread runs."""
MOST_WORD = 60
"""Characters of a finish reason that are compared."""
LONG_BYTES = 64 * 1024
"""The longest reply that is read on the event loop, which takes 7 ms at most."""


def json_object(reply: Reply) -> dict[str, Any]:
    """The JSON object of a reply.

    Raises:
        ModelCallError: If there is none, as when a proxy's page or half a reply came.
    """
    body = _stepwise(reply.body) if is_long(reply) else _at_once(reply.body)
    if isinstance(body, dict):
        return body
    raise errors.malformed(f"the reply is no JSON object ({len(reply.body)} bytes)", reply.status)


def is_long(reply: Reply) -> bool:
    """Whether a reply is so long that it is read on a thread."""
    return len(reply.body) > LONG_BYTES


def _at_once(content: bytes) -> object:
    try:
        parsed: object = from_json(content)
    except ValueError:
        return _leniently(content)
    return parsed


def _stepwise(content: bytes) -> object:
    """Lets others run while it is parsed."""
    try:
        text = content.decode(json.detect_encoding(content), "surrogatepass")
        parsed: object = _decoder().decode(text)
    except (ValueError, RecursionError):
        return None
    return parsed


def loads(text: str) -> object:
    """The JSON of a text; of a long one, to be called on a thread, within the bounds of long replies.

    Raises:
        ValueError: If it is none, or beyond them.
        RecursionError: If it is nested too deeply.
    """
    parsed: object = json.loads(text) if len(text) <= LONG_BYTES else _decoder().decode(text)
    return parsed


def _decoder() -> StepwiseDecoder:
    return StepwiseDecoder(most=MOST_NESTED, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_FIELDS:
        raise ValueError("no reply has so many fields")
    return dict(pairs)


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


_FINISH_REASONS: Mapping[str, FinishReason] = {
    # https://platform.openai.com/docs/api-reference/chat/object, and Gemini, Groq, DeepSeek, OpenRouter, vLLM and llama.cpp likewise
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    # https://platform.claude.com/docs/en/api/handling-stop-reasons
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.REFUSAL,
    # Mistral: https://docs.mistral.ai/api
    "model_length": FinishReason.LENGTH,
    # Together: https://docs.together.ai/reference/chat-completions-1
    "eos": FinishReason.STOP,
    # Text Generation Inference: https://huggingface.github.io/text-generation-inference
    "eos_token": FinishReason.STOP,
    # Cohere: https://docs.cohere.com/reference/chat
    "complete": FinishReason.STOP,
    # Z.ai: https://docs.z.ai/api-reference/llm/chat-completion
    "sensitive": FinishReason.CONTENT_FILTER,
    # Gemini's own names, which routers pass on: https://ai.google.dev/api/generate-content#FinishReason
    "safety": FinishReason.CONTENT_FILTER,
    "recitation": FinishReason.CONTENT_FILTER,
    "blocklist": FinishReason.CONTENT_FILTER,
    "prohibited_content": FinishReason.CONTENT_FILTER,
    "spii": FinishReason.CONTENT_FILTER,
    # Words of other servers for a finished text, and for one that reached its longest length
    **dict.fromkeys(
        ("end", "done", "finish", "finished", "completed", "stop_token", "endoftext", "eot"),
        FinishReason.STOP,
    ),
    **dict.fromkeys(
        ("max_length", "max_output_tokens", "max_new_tokens", "length_capped", "token_limit"),
        FinishReason.LENGTH,
    ),
    # Not finished: the model called a tool, or waits to go on.
    **dict.fromkeys(
        ("tool_calls", "tool_call", "tool_use", "function_call", "pause_turn", "malformed_function_call"),
        FinishReason.OTHER,
    ),
    # No reason given
    **dict.fromkeys(
        ("null", "none", "unknown", "unspecified", "finish_reason_unspecified"), FinishReason.UNSTATED
    ),
    "model_armor": FinishReason.CONTENT_FILTER,
    # Amazon Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
    "guardrail_intervened": FinishReason.CONTENT_FILTER,
    "content_filtered": FinishReason.CONTENT_FILTER,
    # Cohere: https://docs.cohere.com/reference/chat
    "error_toxic": FinishReason.CONTENT_FILTER,
    "error_limit": FinishReason.LENGTH,
    # Gemini: https://ai.google.dev/api/generate-content#FinishReason
    "language": FinishReason.CONTENT_FILTER,
}
"""Why a model stopped, in all providers' words, in lower case; checked 2026-11-22."""

_BROKEN_OFF = frozenset({"insufficient_system_resource", "network_error"})
"""Words of DeepSeek (https://api-docs.deepseek.com/api/create-chat-completion) and Z.ai for an answer that the server gave up."""
_PARTS: Sequence[tuple[re.Pattern[str], FinishReason | None]] = tuple(
    (re.compile(rf"(?<![a-z])({parts})(?![a-z])"), reason)
    for parts, reason in (
        (
            r"(content)?filter(ed)?|safety|moderation|sensitive|guardrail|prohibited|block(ed)?",
            FinishReason.CONTENT_FILTER,
        ),
        (r"abort(ed)?|cancel(l?ed)?|error|failed|interrupted|time(out)?", None),
        (r"stop(ped)?|eos|eot|end|completed?|done|success", FinishReason.STOP),
        (r"incomplete|len(gth)?|max|limit|tokens|repetition|repeat", FinishReason.LENGTH),
    )
)
"""Parts of words that are not listed and what they say; ``None`` for an answer that the server gave up. The first row that fits
applies. vLLM and Moonshot cut off a text that repeats itself (https://github.com/BerriAI/litellm/pull/27101,
https://github.com/MoonshotAI/moonpalace/pull/3)."""


def finish_reason(value: object) -> FinishReason:
    """A provider's reason in our vocabulary.

    ``UNSTATED`` where it gives none, or one that is not known; ``OTHER`` where the answer is not finished.

    Raises:
        ModelCallError: If the provider says that it gave up in the middle: then it can be asked again.
    """
    if not isinstance(value, str) or not value:
        return FinishReason.UNSTATED
    known = _FINISH_REASONS.get(value)
    if known is not None:
        return known
    word = value.lower()
    if word in _BROKEN_OFF:
        raise errors.broken_off(word)
    if word.startswith("content_filter"):  # Gemini's has the reason behind a colon
        return FinishReason.CONTENT_FILTER
    if word in _FINISH_REASONS:
        return _FINISH_REASONS[word]
    for part, reason in _PARTS:
        if part.search(word[:MOST_WORD]):
            if reason is None:
                raise errors.broken_off()
            return reason
    return FinishReason.UNSTATED


def unusual_word(value: object, read: FinishReason) -> str | None:
    """Return a provider's word for why it stopped if it is not known, or says that the answer is not finished."""
    if read is not FinishReason.UNSTATED and read is not FinishReason.OTHER:
        return None
    unknown = isinstance(value, str) and value.lower() not in _FINISH_REASONS
    return short_text(value) if unknown or read is FinishReason.OTHER else None
