"""Replies that come as server-sent events, put together to the one object that a plain reply is.

The line format: https://html.spec.whatwg.org/multipage/server-sent-events.html. The events:
https://platform.openai.com/docs/api-reference/chat-streaming and https://platform.claude.com/docs/en/build-with-claude/streaming.
Errors within a stream: https://openrouter.ai/docs/api/reference/streaming#handling-errors-during-streaming and vLLM's ``data: {"error": …}``.
"""

import contextlib
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import SecretStr

from app.llm.formats import wire
from app.llm.replies import errors
from app.llm.replies.transport_reply import Reply
from app.ports import ModelCallError

_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
"""How an event stream begins; no JSON does."""
_DONE = "[DONE]"
_TEXTS = ("content", "reasoning_content", "reasoning", "thinking", "refusal")
"""Fields of a message that come in pieces."""
_PART_TEXTS = ("text", "thinking", "reasoning")
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking"}


class _Event(NamedTuple):
    name: str
    data: str


def is_stream(reply: Reply) -> bool:
    """Whether a reply is a stream of events."""
    return not reply.body.startswith(b"{") and _START.match(reply.body) is not None


def openai_body(reply: Reply, key: SecretStr | None) -> dict[str, Any]:
    """The reply of a chat or a completion.

    Raises:
        ModelCallError: If it has an error, lacks its end, or has no events of the format.
    """
    whole = _Choice()
    for event in _events(reply.body):
        if event.data.strip() == _DONE:
            whole.ended = True
            break
        whole.add(_object(event, reply, key, started=whole.started))
    if not whole.started:
        raise errors.malformed("the event stream has no choice", reply.status)
    if not whole.ended:
        raise errors.broken_off()
    return whole.body()


class _Choice:
    """The first choice of a stream."""

    def __init__(self) -> None:
        self.started = self.ended = False
        self._fields: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._choice: dict[str, Any] = {"finish_reason": None}
        self._texts: list[str] = []
        self._message: dict[str, list[Any]] = {}

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Takes in the data of an event."""
        for name in ("id", "model", "system_fingerprint", "promptFeedback"):
            if chunk.get(name):
                self._fields[name] = chunk[name]
        if chunk.get("promptFeedback"):  # Gemini's filter blocked the prompt: no choice follows
            self.started = True
        choices = chunk.get("choices")
        choice = wire.mapping(choices[0]) if isinstance(choices, list) and choices else {}
        for counts in (
            chunk.get("usage"),
            choice.get("usage"),
            wire.mapping(chunk.get("x_groq")).get("usage"),
        ):
            self._usage |= wire.mapping(counts)
        if choice and choice.get("index") in {None, 0}:
            self._add(choice)

    def _add(self, choice: Mapping[str, Any]) -> None:
        self.started = True
        if choice.get("error"):
            self._choice["error"], self.ended = choice["error"], True
        if choice.get("finish_reason"):
            self._choice["finish_reason"], self.ended = choice["finish_reason"], True
        if isinstance(choice.get("text"), str):
            self._texts.append(choice["text"])
        # A server that streams although it was not asked may send the whole message at once.
        for name, value in (wire.mapping(choice.get("delta")) or wire.mapping(choice.get("message"))).items():
            if name in _TEXTS and isinstance(value, str | list):
                self._message.setdefault(name, []).extend(value if isinstance(value, list) else [value])

    def body(self) -> dict[str, Any]:
        """The same as a plain reply has it."""
        message = {"role": "assistant", **{name: _joined(pieces) for name, pieces in self._message.items()}}
        said = {"text": "".join(self._texts)} if self._texts else {"message": message}
        if "promptFeedback" in self._fields and not self._message and not self._texts:
            return {**self._fields, "choices": [], "usage": self._usage or None}
        return {**self._fields, "choices": [{**said, **self._choice}], "usage": self._usage or None}


def anthropic_body(reply: Reply, key: SecretStr | None) -> dict[str, Any]:
    """The reply of Anthropic's Messages API.

    Raises:
        ModelCallError: If it has an error, lacks its end, or has no events of the format.
    """
    message: dict[str, Any] = {}
    blocks: dict[object, dict[str, Any]] = {}
    usage: dict[str, Any] = {}
    ended = False
    for event in _events(reply.body):
        data = _object(event, reply, key, started=bool(message))
        match data.get("type", event.name):
            case "message_start":
                message = dict(wire.mapping(data.get("message")))
                usage |= wire.mapping(message.get("usage"))
            case "content_block_start":
                blocks[data.get("index")] = {**wire.mapping(data.get("content_block"))}
            case "content_block_delta":
                _extend(
                    blocks.setdefault(data.get("index"), {"type": "text"}), wire.mapping(data.get("delta"))
                )
            case "message_delta":
                message |= wire.mapping(data.get("delta"))
                usage |= wire.mapping(data.get("usage"))
                ended = ended or bool(message.get("stop_reason"))
            case "message_stop":
                ended = True
    if not message:
        raise errors.malformed("the event stream has no message", reply.status)
    if not ended:
        raise errors.broken_off()
    content = [
        {**block, **{name: "".join(block[name]) for name in _PART_TEXTS if isinstance(block.get(name), list)}}
        for block in blocks.values()
    ]
    return {**message, "content": content, "usage": usage or None}


def _extend(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    name = _DELTAS.get(str(delta.get("type")))
    piece = delta.get(name) if name else None
    if name and isinstance(piece, str):
        known = block.get(name)
        if not isinstance(known, list):
            block[name] = known = [known] if isinstance(known, str) else []
        known.append(piece)


def _joined(pieces: list[Any]) -> str | list[Any]:
    """Pieces of a text as one; parts of content, each of one kind in a row as one part."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    joined: list[Any] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if isinstance(last, str) and isinstance(piece, str):
            joined[-1] = last + piece
        elif isinstance(last, dict) and isinstance(piece, dict) and last.get("type") == piece.get("type"):
            for name in _PART_TEXTS:
                before, after = last.get(name), piece.get(name)
                if isinstance(before, str) and isinstance(after, str):
                    last[name] = before + after
                elif isinstance(before, list) and isinstance(after, list):
                    last[name] = [*before, *after]
        else:
            joined.append(dict(piece) if isinstance(piece, dict) else piece)
    return joined


def _object(event: _Event, reply: Reply, key: SecretStr | None, *, started: bool) -> Mapping[str, Any]:
    """The data of an event.

    Raises:
        ModelCallError: If it is an error, or no object.
    """
    try:
        data = wire.loads(event.data)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        if event.name == "error":
            raise _failed(event.data, reply, key, started=started)
        raise errors.malformed(
            f"an event of the stream is no JSON object ({len(event.data)} characters)", reply.status
        )
    if (fault := data.get("error") if data.get("choices") else errors.fault_of(data)) is not None:
        raise _failed(fault, reply, key, started=started)
    if event.name == "error" or data.get("object") == "error":
        raise _failed(data, reply, key, started=started)
    return data


def objects(reply: Reply) -> Iterator[object]:
    """Yield the parsed data of a stream's events, as far as it is JSON."""
    for event in _events(reply.body):
        with contextlib.suppress(ValueError, RecursionError):
            yield wire.loads(event.data)


def _failed(fault: object, reply: Reply, key: SecretStr | None, *, started: bool) -> ModelCallError:
    return errors.refused_in_reply(fault, reply.headers, key, started=started)


def _events(content: bytes) -> Iterator[_Event]:
    """The events that have data. Its pieces are read one by one: a long stream has very many."""
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    name, data = "", []
    for raw in io.BytesIO(content.removeprefix(b"\xef\xbb\xbf")):
        line = raw.decode("utf-8", "replace").removesuffix("\n")
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field.strip() == "event":
            name = value.strip()
        elif not line.strip():
            yield from _whole(name, data)
            name, data = "", []
    if data and data[-1].rstrip().endswith(("}", _DONE)):  # the last event may lack the empty line after it
        yield from _whole(name, data)


def _whole(name: str, data: list[str]) -> Iterator[_Event]:
    """One event; several where a server leaves out the empty lines between them."""
    if len(data) > 1 and all((one.startswith("{") and one.endswith("}")) or one == _DONE for one in data):
        yield from (_Event(name, one) for one in data)
    elif any(data):
        yield _Event(name, "\n".join(data))
