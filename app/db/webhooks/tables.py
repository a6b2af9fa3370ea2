"""The tables of webhooks: who is to be told, and what of it has been."""

from datetime import datetime

from sqlalchemy import ARRAY, CheckConstraint, ForeignKey, Index, SmallInteger, Text, func, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base


class Webhook(Base):
    """A receiver of messages."""

    __tablename__ = "webhooks"
    __table_args__ = (
        CheckConstraint("(former_secret IS NULL) = (former_secret_until IS NULL)", name="former_secret"),
        CheckConstraint("disabled_reason IN ('by_user', 'gone')", name="disabled_reason"),
        Index("ix_webhooks_tenant_newest", "tenant", text("created_at DESC"), text("id DESC")),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    url: Mapped[str]
    description: Mapped[str | None]
    events: Mapped[list[str]] = mapped_column(ARRAY(Text))
    secret: Mapped[str]
    """Encrypted, for messages have to be signed with it; as it is where there is nothing to encrypt with."""
    former_secret: Mapped[str | None]
    former_secret_until: Mapped[datetime | None]
    """Until then messages are signed with the former secret as well."""
    disabled_reason: Mapped[str | None]
    """``gone`` if the receiver said so (410); null while it is told."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class WebhookDelivery(Base):
    """A message to one receiver, written in the transaction that changes the job: the outbox.

    Whoever delivers it puts ``due_at`` off for as long as that may take; should he die, it is due again then.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'delivered', 'given_up')", name="state"),
        CheckConstraint("(state = 'waiting') = (ended_at IS NULL)", name="ended_at"),
        Index("ix_webhook_deliveries_newest", "webhook_id", text("created_at DESC"), text("id DESC")),
        Index("ix_webhook_deliveries_due", "due_at", postgresql_where=text("state = 'waiting'")),
        Index("ix_webhook_deliveries_ended", "ended_at", postgresql_where=text("ended_at IS NOT NULL")),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    """The header ``webhook-id``, the same in every attempt."""
    tenant: Mapped[str]
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str]
    job_id: Mapped[str | None]
    """The message outlives its job; null in a test."""
    payload: Mapped[str]
    """The request's body, the same in every attempt."""
    state: Mapped[str] = mapped_column(server_default=text("'waiting'"))
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """Begun; also the fencing token of whoever made the last one."""
    due_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    created_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    attempted_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    http_status: Mapped[int | None] = mapped_column(SmallInteger)
    """Of the last attempt; null where none came."""
    error: Mapped[str | None]
    """Why the last attempt failed."""
