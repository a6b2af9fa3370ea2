"""Keeps what a reasoning model thinks before it answers apart from its answer.

Providers that know their models put thoughts into a field of their own, which the adapters read. What is found here is thoughts
within the text, as servers without a parser for the model send them:

* A block of thoughts between tags at the beginning of the reply, or several in a row. One that never ends, as when the reply was cut
  off in it, is all that there is: the answer is empty.
* A closing tag without an opening one before it, where the opening one stands in the model's prompt template. Everything up to the last
  such tag is thoughts.
* The channels of Harmony, the format of gpt-oss: only the final channel is the answer.

Tags anywhere else are part of the text, so that a persona may write about them. The forms were checked on 2026-11-22 against:
https://docs.vllm.ai/en/latest/features/reasoning_outputs/ and the parsers listed at https://docs.vllm.ai/en/latest/api/vllm/reasoning/
(``<think>``; Seed-OSS; Gemma 4), https://huggingface.co/mistralai/Magistral-Small-2507 (``[THINK]``; Magistral's first release has ``<think>``),
https://ai.google.dev/gemini-api/docs/openai (``<thought>``), https://huggingface.co/moonshotai/Kimi-VL-A3B-Thinking (``◁think▷``),
https://developers.openai.com/cookbook/articles/openai-harmony (channels). ``<thinking>`` is what models write that are asked to think.
"""

import re
from typing import NamedTuple

_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("◁think▷", "◁/think▷"),
    ("<|channel>thought", "<channel|>"),
)
_OPENING = dict(_TAGS)
_TAG = re.compile(
    r"<(?:/?(?:think(?:ing)?|thought|seed:think)>|\|channel>thought|channel\|>)|\[/?THINK\]|◁/?think▷"
)
MAX_CHARACTERS = 600_000
"""Longest reply that is split, about 130,000 tokens; any longer one is far too long to be judged, or read as a verdict."""
_SPACE = re.compile(r"\s*")

_HARMONY = re.compile(r"\s*<\|(?:channel|start)\|>")
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>((?:[^<]|<(?!\|(?:end|return|call|start|channel)\|>))*)"
)
_FINAL = "final"
_BARE_HARMONY = "analysis"
_BARE_FINAL = "assistantfinal"
"""What is left of Harmony where a server drops the special tokens: ``analysis…assistantfinal…``."""


class Reply(NamedTuple):
    """A reply in its two parts.

    Attributes:
        thoughts: What comes before the answer, without tags; ``None`` where there are none.
        answer: What the model answers; empty where it only thought.
    """

    thoughts: str | None
    answer: str


def split_thoughts(text: str) -> Reply:
    """The thoughts and the answer of a reply; see above. Splitting the answer again changes nothing, unless forms are mixed.

    Args:
        text: The reply's text. Untrusted; read in linear time, and no longer one than :data:`MAX_CHARACTERS`.
    """
    if len(text) > MAX_CHARACTERS:
        return Reply(None, text)
    # One of these is in every text that has a tag, and in few others; to look at them takes 1 µs, to search for tags 30.
    if "<" not in text and "]" not in text and "▷" not in text:
        return _bare_harmony(text) if text.startswith(_BARE_HARMONY) else Reply(None, text)
    if _HARMONY.match(text):
        return _harmony(text)
    return _tagged(text)


def after_thoughts(text: str) -> str:
    """The answer of a judge or a reasoner, of whom nothing else is read: what follows the last ``</think>``, wherever that stands.

    Replies that were stored before thoughts were kept apart have them still.
    """
    return split_thoughts(text).answer.rpartition("</think>")[2].strip()


def _tagged(text: str) -> Reply:
    """Reads the tags in their order; ``begin`` is where the answer begins by what was read so far."""
    thoughts: list[str] = []
    begin, open_tags = 0, set[str]()
    first = _after_space(text, 0)
    closing: str | None = None
    for found in _TAG.finditer(text):
        tag = found[0]
        if closing is not None:  # within a block, only its own end counts
            if tag != closing:
                continue
        elif tag in _OPENING:
            if found.start() == first:
                begin, closing = found.end(), _OPENING[tag]
            else:
                open_tags.add(_OPENING[tag])
            continue
        elif tag in open_tags:
            open_tags.discard(tag)
            continue
        thoughts.append(text[begin : found.start()])
        begin, closing = found.end(), None
        first = _after_space(text, begin)
        open_tags.clear()
    if closing is not None:
        return _reply([*thoughts, text[begin:]], "")
    return _reply(thoughts, text[first:]) if begin else Reply(None, text)


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _harmony(text: str) -> Reply:
    parts = [(found[1], found[2]) for found in _CHANNEL.finditer(text)]
    answer = "".join(said for channel, said in parts if channel == _FINAL)
    return _reply([said for channel, said in parts if channel != _FINAL], answer.strip())


def _bare_harmony(text: str) -> Reply:
    before, final, answer = text.partition(_BARE_FINAL)
    if not final:
        return Reply(None, text)
    return _reply([before.removeprefix(_BARE_HARMONY)], answer.strip())


def _reply(thoughts: list[str], answer: str) -> Reply:
    return Reply("\n\n".join(said for part in thoughts if (said := part.strip())) or None, answer)
