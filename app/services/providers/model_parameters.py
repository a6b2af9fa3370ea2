"""The parameters that are sent to a job's models and those that are dropped, for plans, manifests and people."""

from collections.abc import Iterator

from app.domain.jobs.specification import JobSpec
from app.domain.personagym.specification import with_sampling
from app.domain.providers.contract import NotSent, SampledRole, SentParameters
from app.domain.providers.model import Model, Takes
from app.domain.providers.parameters import Sent, sent_parameters

UNKNOWN = Takes()


def sampled_models(spec: JobSpec) -> Iterator[tuple[SampledRole, Model]]:
    """Every model that a job calls, as it is sampled, with its role."""
    if spec.generation is not None:
        yield "reasoner", spec.generation.reasoner
    if spec.gym is not None:
        yield "reasoner", spec.gym.reasoner
    if not spec.provided:
        if spec.tasks:
            yield from (("model", model) for model in spec.models)
        if spec.gym is not None:
            yield from (("persona_agent", with_sampling(model)) for model in spec.models)
    yield from (("judge", spec.judges[n]) for n in spec.asked_judges)


def sent_of(model: Model) -> Sent:
    """What of a model's parameters is sent to it, as far as its job knows."""
    return sent_parameters(model.parameters, model.takes or UNKNOWN)


def parameters_of(model: Model) -> SentParameters:
    """What is sent of a model's parameters, as plans, checks and manifests tell it."""
    sent = sent_of(model)
    return SentParameters(
        family=(model.takes or UNKNOWN).family,
        sent=sent.body(model.takes or UNKNOWN),
        not_sent=[
            NotSent(parameter=dropped.name, value=dropped.value, reason=dropped.reason)
            for dropped in sent.dropped
        ],
        without_effect=list(sent.ignored),
    )


def parameter_warnings(model: Model) -> Iterator[str]:
    """What a plan says of parameters that are not sent, or have no effect."""
    sent = sent_of(model)
    for dropped in sent.dropped:
        yield f"{model.label}: {dropped.name} {dropped.value} is not sent: {dropped.reason}."
    for name in sent.ignored:
        yield f"{model.label} takes {name} and ignores it while it reasons."


def extra_fields_of(spec: JobSpec) -> str | None:
    """The version of the list of fields that ``extra`` could have in a job; ``None`` if it calls no model."""
    return next((model.takes.extra_fields for model in spec.called if model.takes is not None), None)


def table_of(spec: JobSpec) -> str | None:
    """The version of the model table by which a job's parameters are sent; ``None`` if it calls no model."""
    return next((model.takes.table for model in spec.called if model.takes is not None), None)
