"""Schemas of what answers say of replies that were used again."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.domain.contract import Answer

Origin = Literal["same_job", "other_job"]


class Spared(Answer):
    """Replies that were used again, and what the calls would have taken as far as that is known."""

    same_job: int = Field(description="Replies to identical calls of the job itself.")
    other_job: int = Field(description="Replies to calls of your other jobs.")
    input_tokens: int
    output_tokens: int
    usd: float | None = Field(description="`null` where no price is known.")
    unpriced_replies: int = Field(description="Replies whose price is unknown and not in the sum.")


class SparedByModel(Spared):
    """The same of one stage on one model."""

    stage: str
    model: str


class ReuseAnswer(Spared):
    """What a job was spared; nothing of it is in `usage`, `cost` or the budget."""

    oldest: datetime | None = Field(description="When the oldest of these replies was asked for.")
    by_model: list[SparedByModel]
