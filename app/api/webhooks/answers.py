"""Schemas of answers about webhooks; see :mod:`app.api.http.answer`."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.api.http.answer import Answer, Page


class Webhook(Answer):
    """A receiver of messages about jobs."""

    id: str = Field(examples=["whk_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["webhook"]
    url: str
    description: str | None
    events: list[str] = Field(examples=[["job.completed", "job.failed"]])
    enabled: bool
    disabled_reason: Literal["by_user", "gone"] | None = Field(
        description="`gone`: the receiver answered 410. `enabled: true` switches it on again."
    )
    former_secret_until: datetime | None = Field(
        description="Until then messages are signed with the secret before this one as well; `null` where none was replaced."
    )
    created_at: datetime
    updated_at: datetime


class NewWebhook(Webhook):
    """A webhook with a secret that was just made."""

    secret: str = Field(
        description="Signs the messages (Standard Webhooks, `v1`). Shown now and never again.",
        examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="],
    )


class WebhookList(Page):
    """A page of webhooks, newest first."""

    data: list[Webhook]


class Delivery(Answer):
    """A message to a webhook, and how its delivery goes."""

    id: str = Field(
        description="The message's id, its header `webhook-id`: the same in every attempt.",
        examples=["msg_8f14e45fceea467a9b1c2d3e4f5a6b7c"],
    )
    object: Literal["webhook_delivery"]
    webhook: str
    event: str = Field(examples=["job.completed"])
    job: str | None = Field(description="`null` in a test.")
    state: Literal["waiting", "delivered", "given_up"]
    attempts: int
    http_status: int | None = Field(description="What the receiver last answered, if it did.")
    error: str | None = Field(description="Why the last attempt failed.")
    created_at: datetime
    attempted_at: datetime | None
    next_attempt_at: datetime | None
    ended_at: datetime | None


class DeliveryList(Page):
    """A page of messages, newest first."""

    data: list[Delivery]
