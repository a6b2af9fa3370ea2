"""Schemas of the bodies that make and change webhooks."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from app.api.http.bodies import Body
from app.api.jobs.requests import Line, Text
from app.domain.webhooks.webhook import JobEvent

Url = Annotated[Text, Field(min_length=1, max_length=2000, pattern=r"^[\x21-\x7e]+$")]
Event = Annotated[JobEvent, Field(strict=False)]
Events = Annotated[list[Event], Field(min_length=1, max_length=20, description="What to tell of.")]

WEBHOOK_EXAMPLE: JsonDict = {
    "url": "https://ci.example.com/hooks/persona-assay",
    "events": ["job.completed", "job.failed"],
    "description": "nightly runs",
}


class WebhookIn(Body):
    """A receiver of messages about jobs."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [WEBHOOK_EXAMPLE]})

    url: Url = Field(
        description="Where to post. `https` and a public address, unless the operator allows the host."
    )
    events: Events = Field(default_factory=lambda: list(JobEvent))
    description: Line | None = Field(None, description="For people.")


class WebhookChangeIn(Body):
    """What to change of a webhook; what is left out stays."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"enabled": True}]}
    )

    url: Url = Field("", validate_default=False)
    events: Events = Field(default_factory=list, validate_default=False)
    description: Line | None = None
    enabled: bool = Field(
        True,
        description="A webhook that is off is told nothing; events meanwhile are not kept, nor what waits when it is switched off.",
    )

    @model_validator(mode="after")
    def _something(self) -> "WebhookChangeIn":
        if not self.model_fields_set:
            raise ValueError("name at least one of url, events, description, enabled")
        return self

    def changes(self) -> dict[str, Any]:
        """What was named."""
        return {name: getattr(self, name) for name in self.model_fields_set}
