"""What real models do that a simulated one does not: asked for by the model's name, `sim-judge+no-temperature+think-tags`.

A quirk may have a share, `error-in-200=0.2`; `finish=<reason>` has the reason that the reply ends with.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from simulator.conversation import Conversation, FaultName, ProviderError
from simulator.draw import Draws

Json = dict[str, Any]

THOUGHTS = (
    "Okay, I have to answer this. I could give it a 2 at first sight. "
    "I am a calm person, but the other reading would be a 4. Let me settle on one."
)
"""What a thinking model thinks: sentences and numbers that nobody may take for its answer."""


class Quirk(NamedTuple):
    """A quirk and what stands behind its `=`."""

    name: str
    value: str = ""

    @property
    def share(self) -> float:
        """How many of the calls it concerns."""
        return float(self.value) if self.value and self.name != "finish" else 1.0


def read_model_name(name: str) -> tuple[str, tuple[Quirk, ...]]:
    """The simulated model and the quirks that a name stands for.

    Raises:
        ValueError: A quirk does not exist, or its share is no number.
    """
    model, *named = name.split("+")
    quirks = tuple(Quirk(*one.split("=", 1)) for one in named)
    for quirk in quirks:
        if quirk.name not in QUIRKS or not 0 <= quirk.share <= 1:
            raise ValueError(quirk.name)
    return model, quirks


def refuse(
    quirks: tuple[Quirk, ...], payload: Mapping[str, object], conversation: Conversation, seed: int
) -> None:
    """Refuses a request that its model does not take.

    Raises:
        ProviderError: The quirks say so.
    """
    for quirk in quirks:
        if (check := _REFUSALS.get(quirk.name)) is None:
            continue
        if _concerns(quirk, seed, ascii((conversation.system, conversation.turns))):
            check(payload, conversation)


def change_reply(quirks: tuple[Quirk, ...], body: str, number: int, seed: int) -> str:
    """A reply's JSON as the quirks make it; `number` tells one attempt from the next."""
    for quirk in quirks:
        if (change := _CHANGES.get(quirk.name)) is None or not _concerns(quirk, seed, number):
            continue
        body = json.dumps(change(json.loads(body), quirk.value))
    return body


def _concerns(quirk: Quirk, seed: int, key: str | int) -> bool:
    return quirk.share == 1 or Draws(seed, "quirk", quirk.name, key).unit() < quirk.share


# -- what a request is refused for ---------------------------------------------------------------------------------


def _unsupported(parameter: str, words: str, name: FaultName = "unsupported_parameter") -> ProviderError:
    return ProviderError(name, words, parameter=parameter)


def _no_parameter(parameter: str) -> Callable[[Mapping[str, object], Conversation], None]:
    def check(payload: Mapping[str, object], _: Conversation) -> None:
        if parameter in payload:
            words = f"Unsupported parameter: '{parameter}' is not supported with this model."
            raise _unsupported(parameter, words)

    return check


def _default_temperature(payload: Mapping[str, object], _: Conversation) -> None:
    if payload.get("temperature", 1) != 1:
        words = "Unsupported value: 'temperature' does not support this value with this model. Only the default (1) value is supported."
        raise _unsupported("temperature", words, "unsupported_value")


def _not_both(payload: Mapping[str, object], _: Conversation) -> None:
    if "temperature" in payload and "top_p" in payload:
        words = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        raise ProviderError("malformed", words)


def _deprecated_temperature(payload: Mapping[str, object], _: Conversation) -> None:
    if "temperature" in payload or "top_p" in payload or "top_k" in payload:
        raise ProviderError("malformed", "`temperature` is deprecated for this model.")


def _no_system(_: Mapping[str, object], conversation: Conversation) -> None:
    if conversation.system:
        raise ProviderError("malformed", "System role not supported")


def _filtered(_: Mapping[str, object], __: Conversation) -> None:
    raise ProviderError(
        "filtered",
        "The response was filtered due to the prompt triggering the content management policy.",
        parameter="prompt",
    )


_REFUSALS: Mapping[str, Callable[[Mapping[str, object], Conversation], None]] = {
    "no-temperature": _no_parameter("temperature"),
    "no-top-p": _no_parameter("top_p"),
    "no-max-tokens": _no_parameter("max_tokens"),
    "default-temperature": _default_temperature,
    "deprecated-temperature": _deprecated_temperature,
    "not-both": _not_both,
    "no-system": _no_system,
    "filtered": _filtered,
}


# -- how a reply differs -------------------------------------------------------------------------------------------


def _text(body: Json) -> str:
    if "choices" in body:
        return str(body["choices"][0]["message"]["content"] or "")
    return "".join(block["text"] for block in body["content"] if block["type"] == "text")


def _with_text(body: Json, text: str) -> Json:
    if "choices" in body:
        body["choices"][0]["message"]["content"] = text
    else:
        body["content"] = [{"type": "text", "text": text, "citations": None}]
    return body


def _with_finish(body: Json, reason: str) -> Json:
    if "choices" in body:
        body["choices"][0]["finish_reason"] = reason
    else:
        body["stop_reason"] = reason
    return body


def _ended_early(body: Json) -> Json:
    return _with_finish(body, "length" if "choices" in body else "max_tokens")


def _think_unclosed(body: Json, _: str) -> Json:
    return _ended_early(_with_text(body, f"<think>{THOUGHTS}"))


def _with_member(member: str) -> Callable[[Json, str], Json]:
    def change(body: Json, _: str) -> Json:
        body["choices"][0]["message"][member] = THOUGHTS
        return body

    return change


def _only_thoughts(body: Json, _: str) -> Json:
    if "choices" in body:
        body["choices"][0]["message"] |= {"content": "", "reasoning_content": THOUGHTS}
    else:
        body["content"] = [{"type": "thinking", "thinking": THOUGHTS, "signature": "simulated"}]
    return _ended_early(body)


def _think_blocks(body: Json, _: str) -> Json:
    body["content"].insert(0, {"type": "thinking", "thinking": THOUGHTS, "signature": "simulated"})
    return body


def _think_list(body: Json, _: str) -> Json:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHTS}]}
    body["choices"][0]["message"]["content"] = [thinking, {"type": "text", "text": _text(body)}]
    return body


def _cut_off(body: Json, _: str) -> Json:
    text = _text(body)
    return _ended_early(_with_text(body, text[: max(1, len(text) // 2)]))


def _cut_off_musing(body: Json, _: str) -> Json:
    return _ended_early(_with_text(body, "Let me weigh this step by step. At first I would say it's a 4"))


def _error_in_200(_: Json, __: str) -> Json:
    return {
        "error": {"code": 502, "message": "Provider returned error", "metadata": {"provider_name": "Sim"}}
    }


def _error_in_choice(body: Json, _: str) -> Json:
    choice = body["choices"][0]
    choice["error"] = {
        "code": 502,
        "message": "Upstream error from Sim",
        "metadata": {"error_type": "upstream"},
    }
    return _with_finish(_with_text(body, _text(body)[:4]), "error")


def _no_usage(body: Json, _: str) -> Json:
    return {name: value for name, value in body.items() if name != "usage"}


_CHANGES: Mapping[str, Callable[[Json, str], Json]] = {
    "think-tags": lambda body, _: _with_text(body, f"<think>\n{THOUGHTS}\n</think>\n\n{_text(body)}"),
    "think-end-tag": lambda body, _: _with_text(body, f"{THOUGHTS}\n</think>\n\n{_text(body)}"),
    "think-unclosed": _think_unclosed,
    "think-blocks": _think_blocks,
    "think-list": _think_list,
    "reasoning-content": _with_member("reasoning_content"),
    "reasoning": _with_member("reasoning"),
    "only-thoughts": _only_thoughts,
    "cut-off": _cut_off,
    "cut-off-musing": _cut_off_musing,
    "finish": _with_finish,
    "error-in-200": _error_in_200,
    "error-in-choice": _error_in_choice,
    "no-usage": _no_usage,
}

QUIRKS = frozenset(_REFUSALS) | frozenset(_CHANGES)
"""The names of all quirks."""
