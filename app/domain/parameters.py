"""What of a model's parameters is sent, what is not, and why."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from app.domain.model import ModelParameters, Takes

RESERVED_EXTRAS = frozenset(
    {"model", "messages", "prompt", "system", "stream", "stream_options", "n"}
    | {"max_tokens", "max_completion_tokens"}
)
"""Body fields that are ours: they would change what is asked, or the form or number of the answers."""

DEFAULTS: Mapping[str, object] = {"temperature": 1, "top_p": 1}
"""What the models that refuse a parameter sample with: to leave it out asks for the same."""

NO_REASONING = "none"
"""The reasoning effort at which a model does not reason."""


class Dropped(NamedTuple):
    """A parameter that is asked for and not sent.

    Attributes:
        name: As in ``ModelParameters``; a field of ``extra`` as ``extra.<name>``.
        value: As it is asked for.
        reason: Why, for people.
    """

    name: str
    value: object
    reason: str


class Sent(NamedTuple):
    """What of a model's parameters is sent.

    Attributes:
        values: By their names in ``ModelParameters``, with what the wire format demands; without ``extra``.
        extra: Further fields of the body.
        dropped: What is asked for and not sent.
        ignored: Parameters that are sent and have no effect.
    """

    values: Mapping[str, object]
    extra: Mapping[str, object]
    dropped: tuple[Dropped, ...]
    ignored: tuple[str, ...]

    def named(self, takes: Takes) -> dict[str, object]:
        """The values by the names that the wire format gives them."""
        return {takes.names.get(name, name): value for name, value in self.values.items()}

    def body(self, takes: Takes) -> dict[str, object]:
        """All of it as fields of a request's body."""
        return {**self.extra, **self.named(takes)}


def sent_parameters(parameters: ModelParameters, takes: Takes) -> Sent:
    """What of ``parameters`` is sent to a model that takes ``takes``.

    What is left out although it is asked for is in ``dropped``, unless the model's default is the same.
    """
    asked = _asked(parameters)
    refused = dict(_refused(asked, parameters, takes))
    values = {name: value for name, value in asked.items() if name not in refused}
    reserved = RESERVED_EXTRAS & parameters.extra.keys()
    return Sent(
        values=values | {name: value for name, value in takes.needs.items() if name not in values},
        extra={name: value for name, value in parameters.extra.items() if name not in reserved},
        dropped=(
            *(
                Dropped(name, asked[name], refused[name])
                for name in sorted(refused)
                if asked[name] != DEFAULTS.get(name)
            ),
            *(Dropped(f"extra.{name}", parameters.extra[name], _reserved(name)) for name in sorted(reserved)),
        ),
        ignored=tuple(name for name in takes.ignores if name in values),
    )


def parameter_problems(parameters: ModelParameters, takes: Takes) -> Iterator[tuple[str, str]]:
    """The parameters that would be sent and are beyond what the model takes, each with what is wrong."""
    sent = sent_parameters(parameters, takes).values
    for name, most in takes.at_most.items():
        value = sent.get(name)
        if isinstance(value, int | float) and value > most:
            yield name, f"this model takes at most {most:g}, and would refuse every call with {value:g}"


def _refused(
    asked: Mapping[str, object], parameters: ModelParameters, takes: Takes
) -> Iterator[tuple[str, str]]:
    family = f"models of the family {takes.family}" if takes.family else "this wire format"
    effort = parameters.extra.get("reasoning_effort", takes.default_effort)
    for name in asked:
        if name in takes.refuses:
            yield name, f"{family} refuse it" if takes.family else "its wire format has none"
        elif name in takes.refuses_reasoning and effort != NO_REASONING:
            yield (
                name,
                f'{family} refuse it while they reason; "extra": {{"reasoning_effort": "{NO_REASONING}"}} lets it be sent',
            )
    both = [name for name in takes.one_of if name in asked]
    for name in both[1:]:
        yield name, f"{family} take either {' or '.join(takes.one_of)}; {both[0]} is sent"


def _reserved(name: str) -> str:
    return (
        "max_tokens of the model sets it"
        if name.startswith("max_")
        else "this service sets it; another value would change what is asked"
    )


def _asked(parameters: ModelParameters) -> dict[str, object]:
    values: Mapping[str, object] = {
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "max_tokens": parameters.max_tokens,
        "seed": parameters.seed,
        "stop": list(parameters.stop) or None,
    }
    return {name: value for name, value in values.items() if value is not None}
