"""Which parameters a family of models takes: known before the call, so that a plan can warn and a call can succeed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.model import Model, ModelParameters
from app.llm.connections import ConnectionKind

DEFAULT_ANTHROPIC_MAX_TOKENS = 1024
"""The Messages API demands a limit; this is the one of the atomic-level paper's experiments."""

_RESERVED_EXTRAS = frozenset(
    {"model", "messages", "system", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"}
)
"""Body fields that are ours: they would change what is asked, or the form or number of the answers."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a family of models takes.

    Attributes:
        max_tokens_field: The body's name for the longest answer.
        refuses: Parameters that the family answers with an error, by their names in ``ModelParameters``.
    """

    max_tokens_field: str = "max_tokens"
    refuses: frozenset[str] = frozenset()


_REASONING = Capabilities("max_completion_tokens", frozenset({"temperature", "top_p", "stop"}))
_OPENAI_FAMILIES: tuple[tuple[re.Pattern[str], Capabilities], ...] = (
    (re.compile(r"gpt-5[\d.]*-chat"), Capabilities("max_completion_tokens")),
    (re.compile(r"(o[134]|gpt-5)([-.]|$)"), _REASONING),
)
_ANTHROPIC = Capabilities(refuses=frozenset({"seed"}))


def capabilities(kind: ConnectionKind, name: str) -> Capabilities:
    """What a model takes, by its provider's name for it; a publisher's prefix (``openai/o3``) is passed over."""
    if kind == "anthropic":
        return _ANTHROPIC
    family = name.rpartition("/")[2]
    return next((found for pattern, found in _OPENAI_FAMILIES if pattern.match(family)), Capabilities())


def unsupported_parameters(kind: ConnectionKind, model: Model) -> list[str]:
    """The parameters asked of a model that will not be sent, because its family would refuse the call for them.

    Returns:
        Names as in ``ModelParameters``; a field of ``extra`` as ``extra.<name>``.
    """
    asked = _asked(model.parameters)
    refused = [
        name
        for name in capabilities(kind, model.name).refuses
        if name in asked and not _is_default(asked, name)
    ]
    return sorted(refused) + sorted(
        f"extra.{name}" for name in model.parameters.extra.keys() & _RESERVED_EXTRAS
    )


def sendable(kind: ConnectionKind, model: Model) -> dict[str, object]:
    """The parameters to send: those asked, less the refused; ``extra`` not included."""
    refuses = capabilities(kind, model.name).refuses
    return {name: value for name, value in _asked(model.parameters).items() if name not in refuses}


def sendable_extra(parameters: ModelParameters) -> dict[str, object]:
    """The fields of ``extra`` to send."""
    return {name: value for name, value in parameters.extra.items() if name not in _RESERVED_EXTRAS}


def _asked(parameters: ModelParameters) -> dict[str, object]:
    values: Mapping[str, object] = {
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "max_tokens": parameters.max_tokens,
        "seed": parameters.seed,
        "stop": list(parameters.stop) or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _is_default(asked: Mapping[str, object], name: str) -> bool:
    """Whether leaving the parameter out asks for the same: reasoning models sample at 1, and take no other value."""
    return name in {"temperature", "top_p"} and asked[name] == 1
