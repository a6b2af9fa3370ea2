"""A reply's text and thoughts, in whichever form a provider sends them. All forms were checked 2026-11-22.

Content is a text, or a list of parts: OpenAI's (https://platform.openai.com/docs/api-reference/chat/object), Mistral's with ``thinking``
chunks (https://docs.mistral.ai/capabilities/reasoning), Anthropic's blocks with ``thinking`` and ``redacted_thinking``
(https://platform.claude.com/docs/en/build-with-claude/extended-thinking). Thoughts beside a text are ``reasoning_content``
(https://api-docs.deepseek.com/guides/reasoning_model, also vLLM's first name for it and LiteLLM's), ``reasoning`` (vLLM,
https://openrouter.ai/docs/use-cases/reasoning-tokens, https://console.groq.com/docs/reasoning), or ``thinking`` (Ollama).
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from app.domain.judging.thoughts import split_thoughts
from app.llm.replies import errors
from app.llm.replies.texts import storable


class Replied(NamedTuple):
    """What a model said.

    Attributes:
        text: The answer.
        thoughts: See :class:`app.domain.providers.model.ChatReply`.
    """

    text: str
    thoughts: str | None

    @property
    def characters(self) -> int:
        """Length of both."""
        return len(self.text) + len(self.thoughts or "")


def of_message(message: Mapping[str, Any]) -> Replied:
    """The answer and the thoughts of a message in OpenAI's format.

    Raises:
        ModelCallError: If its content is neither a text nor a list of parts.
    """
    content = message.get("content")
    said = of_parts(content) if isinstance(content, list) else _of_text(content)
    beside = message.get("reasoning_content") or message.get("reasoning") or message.get("thinking")
    if not isinstance(beside, str) or not beside.strip():
        return said
    return Replied(said.text, "\n\n".join(filter(None, (storable(beside.strip()), said.thoughts))))


def of_parts(parts: list[Any]) -> Replied:
    """The answer and the thoughts in a list of parts.

    Raises:
        ModelCallError: If something else is among them.
    """
    if not all(isinstance(part, dict | str) for part in parts):
        raise errors.malformed("the answer's content is no text")
    said = _of_text("".join(text for part in parts for text in _texts(part)))
    thinking = [_thoughts(part) for part in parts if isinstance(part, dict) and _is_thinking(part)]
    if not thinking:
        return said
    return Replied(said.text, storable("\n\n".join(filter(None, (*thinking, said.thoughts)))))


def _of_text(text: object) -> Replied:
    if text is not None and not isinstance(text, str):
        raise errors.malformed("the answer's content is no text")
    thoughts, answer = split_thoughts(storable(text or ""))
    return Replied(answer, thoughts)


def _is_thinking(part: Mapping[str, Any]) -> bool:
    return part.get("type") in {"thinking", "redacted_thinking", "reasoning"} or part.get("thought") is True


def _texts(part: Mapping[str, Any] | str) -> Iterator[str]:
    """The text of a part that is none of thoughts; nothing for what is no text, such as a reference."""
    text = part if isinstance(part, str) else part.get("text")
    if isinstance(text, str) and (isinstance(part, str) or not _is_thinking(part)):
        yield text


def _thoughts(part: Mapping[str, Any]) -> str:
    """The thoughts of a part; empty where the provider keeps them to itself."""
    said = next((part[name] for name in ("thinking", "reasoning", "text") if part.get(name)), "")
    if isinstance(said, list):  # Mistral's are chunks of text themselves
        said = "".join(text for chunk in said if isinstance(chunk, dict | str) for text in _texts(chunk))
    return said.strip() if isinstance(said, str) else ""
