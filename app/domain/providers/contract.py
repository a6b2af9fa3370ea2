"""Models and connections as clients ask for them and are shown them."""

from typing import Any, Literal

from pydantic import Field

from app.domain.contract import Answer

SampledRole = Literal["model", "persona_agent", "judge", "reasoner"]


class NotSent(Answer):
    """A parameter that is asked for and not sent."""

    parameter: str = Field(description="A field of `extra` as `extra.<name>`.")
    value: Any
    reason: str


class SentParameters(Answer):
    """What a job would send of the model's parameters."""

    family: str | None = Field(description="Its family in the model table; `null` where it knows none.")
    sent: dict[str, Any] = Field(description="Fields of the request's body.")
    not_sent: list[NotSent]
    without_effect: list[str] = Field(description="Parameters that the model takes and ignores.")
