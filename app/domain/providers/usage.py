"""What calls took, failed of and were spared, as jobs and their results tell it."""

from datetime import datetime

from pydantic import Field

from app.domain.contract import Answer, Number

Amount = Number
"""US dollars; a sum of nothing is the integer 0."""


class OfModel(Answer):
    """What is told of one stage on one model."""

    stage: str
    model: str


class Tokens(Answer):
    """Calls and tokens; every attempt that was sent counts as a call."""

    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int


class ModelUsage(Tokens, OfModel):
    """Calls and tokens of one stage on one model."""

    usd: Amount | None = Field(description="`null` if no price is known.")
    unpriced_calls: int


class JobUsage(Tokens):
    """Calls and tokens of a job."""

    by_model: list[ModelUsage]


class Cost(Answer):
    """US dollars spent."""

    usd: Amount | None = Field(description="`null` if no price is known.")
    unpriced_calls: int = Field(description="Calls of unknown, possibly zero, cost; not included in the sum.")


class FailedCalls(OfModel):
    """Calls of one stage and model that failed in the same way."""

    code: str = Field(description="The provider's code, or one of ours such as `timeout`.")
    http_status: int | None = Field(description="`null` if no answer came.")
    detail: str | None = Field(description="The provider's message for one of them, at most 300 characters.")
    remedy: str = Field(description="What to do about it, in sentences.")
    calls: int = Field(description="Attempts, including those that succeeded when retried.")
    last_at: datetime


class Spared(Answer):
    """Replies that were used again, and what the calls would have taken as far as that is known."""

    same_job: int = Field(description="Replies to identical calls of the job itself.")
    other_job: int = Field(description="Replies to calls of your other jobs.")
    input_tokens: int
    output_tokens: int
    usd: Amount | None = Field(description="`null` if no price is known.")
    unpriced_replies: int = Field(description="Replies of unknown price, not in the sum.")


class SparedByModel(Spared, OfModel):
    """The same for one stage and model."""


class ReuseAnswer(Spared):
    """What reuse saved; none of it is in `usage`, `cost` or the budget."""

    oldest: datetime | None = Field(description="When the oldest of these replies was requested.")
    by_model: list[SparedByModel]
