"""What of a model's parameters is sent, what is not, and why."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from app.domain.errors import escape_pointer
from app.domain.providers.extra import extra_conflicts, extra_problem, thought_tokens
from app.domain.providers.model import Model, ModelParameters, Takes

DEFAULTS: Mapping[str, object] = {"temperature": 1, "top_p": 1}
"""What the models that refuse a parameter sample with: to leave it out asks for the same."""

NO_REASONING = "none"
"""The reasoning effort at which a model does not reason."""

DEFAULT_OUTPUT_BOUND = 16_384
"""Tokens that a reply is reckoned to have at most where the model has no ``max_tokens``.

A model that writes more without a limit can exceed its job's budget by the rest.
"""


class Dropped(NamedTuple):
    """A requested parameter that is not sent.

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
    withheld = dict(extra_problems(parameters, takes))
    return Sent(
        values=values | {name: value for name, value in takes.needs.items() if name not in values},
        extra={name: value for name, value in parameters.extra.items() if name not in withheld},
        dropped=(
            *(
                Dropped(name, asked[name], refused[name])
                for name in sorted(refused)
                if asked[name] != DEFAULTS.get(name)
            ),
            *(Dropped(f"extra.{name}", parameters.extra[name], withheld[name]) for name in sorted(withheld)),
        ),
        ignored=tuple(name for name in takes.ignores if name in values),
    )


def parameter_problems(parameters: ModelParameters, takes: Takes) -> Iterator[tuple[str, str]]:
    """The parameters that are beyond what the model takes, or are not for jobs to set, each with what is wrong."""
    for name, wrong in extra_problems(parameters, takes):
        yield f"extra/{escape_pointer(name)}", wrong
    sent = sent_parameters(parameters, takes).values
    for name, most in takes.at_most.items():
        value = sent.get(name)
        if isinstance(value, int | float) and value > most:
            yield name, f"this model accepts at most {most:g}; it would reject {value:g}"


def extra_problems(parameters: ModelParameters, takes: Takes) -> Iterator[tuple[str, str]]:
    """The fields of ``extra`` that are not sent, each with the reason."""
    conflicts = extra_conflicts(takes.format, parameters.extra, parameters.max_tokens)
    for name, value in parameters.extra.items():
        wrong = extra_problem(takes.format, takes.allowed_extra, name, value, takes.extra_fields)
        if wrong is None and name not in takes.allowed_extra:
            wrong = conflicts.get(name)
        if wrong is not None:
            yield name, wrong


def sets_allowed_extra(model: Model) -> bool:
    """Whether a model is sent a field that the operator allows: only the operator knows what a call then costs."""
    return model.takes is not None and not model.parameters.extra.keys().isdisjoint(model.takes.allowed_extra)


def most_output_tokens(model: Model) -> int:
    """The most tokens that a reply of a model is reckoned with."""
    parameters, takes = model.parameters, model.takes or Takes()
    named = None if "max_tokens" in takes.refuses else parameters.max_tokens
    bound = named if named is not None and takes.bounds else max(DEFAULT_OUTPUT_BOUND, named or 0)
    return bound + thought_tokens(takes.format, parameters.extra)


def bounded_output(model: Model, tokens: float) -> float:
    """Expected tokens of a reply, at most the ``max_tokens`` that the model is sent and the thoughts beyond them."""
    parameters, takes = model.parameters, model.takes or Takes()
    if parameters.max_tokens is None or "max_tokens" in takes.refuses:
        return tokens
    return min(tokens, parameters.max_tokens + thought_tokens(takes.format, parameters.extra))


def share_written(models: Sequence[Model], tokens: float) -> float:
    """Average share of an expected text that fits into the models' ``max_tokens``."""
    return sum(bounded_output(model, tokens) for model in models) / (tokens * len(models))


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


def _asked(parameters: ModelParameters) -> dict[str, object]:
    values: Mapping[str, object] = {
        "temperature": parameters.temperature,
        "top_p": parameters.top_p,
        "max_tokens": parameters.max_tokens,
        "seed": parameters.seed,
        "stop": list(parameters.stop) or None,
    }
    return {name: value for name, value in values.items() if value is not None}
