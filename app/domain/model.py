"""Models, their parameters, and one call to them, without any provider's vocabulary."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class ModelParameters:
    """Sampling parameters of a model; ``None`` leaves the provider's default.

    Attributes:
        temperature: 0–2.
        top_p: 0–1.
        max_tokens: Longest answer, in tokens.
        seed: Passed to providers that know one.
        stop: Stop sequences.
        extra: Further fields of the provider's request body, as they are.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """A model under test, or a judge.

    Attributes:
        label: How results name it; unique within its list in a job. ``connection/name`` unless the user chose one.
        connection: Id of the connection that serves it.
        name: The provider's name for it, possibly with slashes.
        parameters: How it is sampled.
        simulated: Whether its connection leads to the simulator, so that nothing it says describes a real model.
    """

    label: str
    connection: str
    name: str
    parameters: ModelParameters = ModelParameters()
    simulated: bool = False


class Stage(StrEnum):
    """The stage of a job to which a call belongs."""

    PERSONAS = "personas"
    """Making up personas, in a job that does nothing else."""
    ENVIRONMENTS = "environments"
    """Finding the environments of a persona; this and the next two make up PersonaGym's preparation."""
    QUESTIONS = "questions"
    EXEMPLARS = "exemplars"
    GENERATION = "generation"
    JUDGING = "judging"
    CHECKING = "checking"
    """Judging sentences alone that were judged with others, to see how far the two agree."""


class FinishReason(StrEnum):
    """Why a model stopped, in one vocabulary for all providers."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    REFUSAL = "refusal"
    OTHER = "other"


class Usage(NamedTuple):
    """Tokens of one call, or of many added up.

    Attributes:
        input_tokens: All prompt tokens, cached ones included.
        output_tokens: Answer tokens, reasoning included.
        cached_input_tokens: Prompt tokens served from the provider's cache.
        written_input_tokens: Prompt tokens that the provider stored in its cache, where it charges for that.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    written_input_tokens: int = 0


class ChatRequest(NamedTuple):
    """One call to a model.

    Attributes:
        model: Which model, sampled how.
        system: System prompt; ``None`` for none.
        user: User prompt.
        request_id: Identity of what is asked for: ``job/…/attempt``, the same for a repeated attempt but for its
            last part. Sent along so that a provider's logs can be matched with ours.
        deadline_seconds: Wall-clock limit around the whole call.
    """

    model: Model
    system: str | None
    user: str
    request_id: str
    deadline_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """What a provider's reply says of its own rate limits for the model.

    Attributes:
        requests_per_minute: Calls that it allows; ``None`` where it does not say.
        tokens_per_minute: Tokens that it allows; ``None`` where it does not say.
        exhausted_seconds: Until an allowance that is used up is there again; 0 where none is used up.
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    exhausted_seconds: float = 0.0


class ChatReply(NamedTuple):
    """What a model answered.

    Attributes:
        text: The answer; empty where the model gave none.
        finish_reason: Why it stopped.
        usage: Tokens, as the provider counted them; ``None`` where it did not.
        model_snapshot: The model name that the provider reported.
        system_fingerprint: The provider's backend fingerprint, where it gives one.
        provider_request_id: The provider's id of the call, where it gives one.
        limits: The provider's rate limits, where the reply has news of them.
    """

    text: str
    finish_reason: FinishReason
    usage: Usage | None = None
    model_snapshot: str | None = None
    system_fingerprint: str | None = None
    provider_request_id: str | None = None
    limits: ProviderLimits | None = None
