"""Models and connections as clients ask for them and are shown them."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from app.domain.contract import Answer, Number
from app.domain.providers.model import ConnectionKind, ReplyForm
from app.domain.providers.usage import Amount

CheckedRole = Literal["judge", "model", "persona_agent"]
SampledRole = Literal["model", "persona_agent", "judge", "reasoner"]


class NotSent(Answer):
    """A requested parameter that is not sent."""

    parameter: str = Field(description="A field of `extra` as `extra.<name>`.")
    value: Any
    reason: str


class SentParameters(Answer):
    """Which of the model's parameters a job would send."""

    family: str | None = Field(description="The family in the model table; `null` if unknown.")
    sent: dict[str, Any] = Field(description="Fields of the request's body.")
    not_sent: list[NotSent]
    without_effect: list[str] = Field(description="Parameters that the model accepts but ignores.")


class CheckedReply(Answer):
    """What the model answered."""

    text: str = Field(description="The beginning of the text.")
    finish_reason: str
    model_snapshot: str | None = Field(description="The model's name in the reply.")
    input_tokens: int | None
    output_tokens: int | None
    thoughts: bool = Field(
        description="Whether the reply contains thoughts, which are stored apart from its text."
    )


class CheckedLimits(Answer):
    """The rate limits that the reply's headers name."""

    requests_per_minute: float | None
    tokens_per_minute: float | None
    input_tokens_per_minute: float | None
    output_tokens_per_minute: float | None


class CheckError(Answer):
    """Why there is no reply."""

    code: str = Field(description="The provider's code, or one of ours.")
    status: int | None = Field(description="HTTP status; `null` if no response came.")
    message: str
    cause: str = Field(description="What happened, in plain words.")
    remedy: str = Field(description="What to do about it.")


class RefusedParameter(Answer):
    """A parameter that the provider refused although the model table lists it as accepted."""

    parameter: str
    said: str = Field(description="The provider's message.")


class CheckedPrice(Answer):
    """US dollars per million tokens; `null` if no price is known."""

    input: Amount | None
    output: Amount | None
    source: str | None


class ModelEnds(Answer):
    """When a model is retired."""

    day: str = Field(description="The first day on which it no longer answers.", examples=["2027-01-14"])
    source: str
    certainty: Literal["vendor", "secondary", "inferred"]


class Finding(Answer):
    """A finding, as a sentence."""

    good: bool
    text: str


class ModelCheck(Answer):
    """The findings of a model check."""

    object: Literal["model_check"] = "model_check"
    model: str
    role: CheckedRole
    kind: str
    base_url: str
    simulated: bool
    works: bool | None = Field(description="Whether it answered with a text; `null` if it was not called.")
    calls: int
    latency_ms: float | None = Field(description="Of the last call.")
    usd: Amount | None = Field(description="Cost of the answered call, if known.")
    reply: CheckedReply | None
    limits: CheckedLimits | None
    error: CheckError | None
    refused: list[RefusedParameter]
    price: CheckedPrice
    ends: ModelEnds | None
    model_table: str | None = Field(
        description="Version of the table of model families and their parameters."
    )
    parameters: SentParameters
    reply_forms: list[ReplyForm] | None = Field(
        description="Of a judge: the forms of `judging.reply` that its server enforced; `null` if none was tried."
    )
    findings: list[Finding] = Field(description="All findings as sentences.")


class ConnectionAnswer(Answer):
    """A configured connection; its key is never shown."""

    id: str
    kind: str
    simulated: bool
    models: list[str] | None = Field(description="Models that jobs may use; `null` for all.")
    requests_per_minute: Number | None
    tokens_per_minute: Number | None
    max_in_flight: int | None


class ConnectionList(Answer):
    """All configured connections."""

    data: list[ConnectionAnswer]


class KeptLimits(Answer):
    """Rate limits of a model; `null` for none."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_in_flight: int | None = None


class KeptConnectionLimits(KeptLimits):
    """Limits for each model separately, and for single models."""

    models: dict[str, KeptLimits]


class KeptPrices(Answer):
    """US dollars per million tokens."""

    input: float
    output: float
    cached_input: float | None
    batch_share: float = Field(description="The price of a batch call as a share of these prices.")


class KeptConnection(Answer):
    """A connection to a model provider, without its key."""

    name: str = Field(examples=["lab-vllm"])
    object: Literal["connection"] = "connection"
    version: str = Field(
        description="Changes with URL, limits or prices. A job keeps the version it was submitted with.",
        examples=["3f9c2a7104d8be65"],
    )
    kind: ConnectionKind
    base_url: str
    key_set: bool
    key_hint: str | None = Field(
        description="The key's last four characters; `null` without a key, or if it is shorter than 20 "
        "characters.",
        examples=["x7Qa"],
    )
    limits: KeptConnectionLimits
    prices: dict[str, KeptPrices]
    models: list[str] | None = Field(description="`null` for all.")
    batches: bool
    stream: bool = Field(
        description="Whether calls ask for event streams, for a server that answers no other way."
    )
    families: dict[str, str] = Field(
        description="By model: a name from which the model table knows its family."
    )
    description: str | None
    created_at: datetime = Field(description="When this version was created.")
    updated_at: datetime


class KeptConnectionList(Answer):
    """All connections of the tenant, by name."""

    data: list[KeptConnection]
