"""Webhooks as clients ask for them and are shown them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from app.domain.contract import Answer, Body, ChangeBody, Line, Page, Text
from app.domain.webhooks.webhook import WebhookEvent

Url = Annotated[Text, Field(min_length=1, max_length=2000, pattern=r"^[\x21-\x7e]+$")]
Event = Annotated[WebhookEvent, Field(strict=False)]
Events = Annotated[list[Event], Field(min_length=1, max_length=20, description="Events to report.")]

WEBHOOK_EXAMPLE: JsonDict = {
    "url": "https://ci.example.com/hooks/persona-assay",
    "events": ["job.completed", "job.failed"],
    "description": "nightly runs",
}


class WebhookIn(Body):
    """A receiver of messages about events."""

    model_config = ConfigDict(json_schema_extra={"examples": [WEBHOOK_EXAMPLE]})

    url: Url = Field(
        description="The URL to post to. `https` and a public address, unless the operator allows the host."
    )
    events: Events = Field(default_factory=lambda: list(WebhookEvent))
    description: Line | None = Field(None, description="A description, for people.")


class WebhookChangeIn(ChangeBody):
    """Changes to a webhook; omitted fields stay as they are."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": True}]})

    url: Url = Field("", validate_default=False)
    events: Events = Field(default_factory=list, validate_default=False)
    description: Line | None = None
    enabled: bool = Field(
        True,
        description="A disabled webhook receives nothing; events in the meantime, and messages still waiting "
        "when it is disabled, are not kept.",
    )


class Webhook(Answer):
    """A receiver of messages about events."""

    id: str = Field(examples=["whk_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["webhook"] = "webhook"
    url: str
    description: str | None
    events: list[str] = Field(examples=[["job.completed", "job.failed"]])
    enabled: bool
    disabled_reason: Literal["by_user", "gone"] | None = Field(
        description="`gone`: the receiver answered 410. `enabled: true` enables it again."
    )
    former_secret_until: datetime | None = Field(
        description="Until then, messages are also signed with the previous secret; `null` if none was replaced."
    )
    created_at: datetime
    updated_at: datetime


class NewWebhook(Webhook):
    """A webhook with a new secret."""

    secret: str = Field(
        description="Signs the messages (Standard Webhooks, `v1`). Shown only once.",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="],
    )


class WebhookList(Page[Webhook]):
    """A page of webhooks, newest first."""


class Delivery(Answer):
    """A message to a webhook and its delivery."""

    id: str = Field(
        description="The message's id, its header `webhook-id`: the same in every attempt.",
        examples=["msg_8f14e45fceea467a9b1c2d3e4f5a6b7c"],
    )
    object: Literal["webhook_delivery"] = "webhook_delivery"
    webhook: str
    event: str = Field(examples=["job.completed"])
    job: str | None = Field(description="`null` for a test, and where there is no job.")
    state: Literal["waiting", "delivered", "given_up"]
    attempts: int
    http_status: int | None = Field(description="The receiver's last answer, if any.")
    error: str | None = Field(description="Why the last attempt failed.")
    created_at: datetime
    attempted_at: datetime | None
    next_attempt_at: datetime | None
    ended_at: datetime | None


class DeliveryList(Page[Delivery]):
    """A page of messages, newest first."""
