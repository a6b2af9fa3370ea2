"""The response cache's tables; empty unless a job reuses replies."""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    SmallInteger,
    UniqueConstraint,
    func,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base


class Reply(Base):
    """A reply to a request, or who is asking for it.

    A claim holds as long as its shard's lease under that token: whoever dies, or gives the shard back, claims nothing.
    """

    __tablename__ = "replies"
    __table_args__ = (Index("ix_replies_job_id", "job_id"), Index("ix_replies_asked_at", "asked_at"))

    tenant: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[bytes] = mapped_column(primary_key=True)
    """See :func:`app.domain.providers.reuse.reply_key`."""
    job_id: Mapped[str]
    """The job that asked; a reply goes with it."""
    shared: Mapped[bool]
    """Whether other jobs may use it."""
    shard_id: Mapped[int] = mapped_column(BigInteger)
    lease_token: Mapped[int] = mapped_column(BigInteger)
    asked_at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
    text: Mapped[str | None]
    """Null while it is being asked for."""
    input_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    cached_input_tokens: Mapped[int | None]
    model_snapshot: Mapped[str | None]
    system_fingerprint: Mapped[str | None]
    thoughts: Mapped[str | None]
    """See :class:`app.domain.providers.model.ChatReply`; in the text of replies that were kept before there was this column."""


class ReusedReply(Base):
    """A call that was not made: the row of ``responses``, ``verdicts`` or ``grades`` that it stands for, and what it would have taken."""

    __tablename__ = "reused_replies"
    __table_args__ = (
        CheckConstraint("origin IN ('same_job', 'other_job')", name="origin"),
        UniqueConstraint(
            "cell_id", "run", "item", "unit", "trait", "judge", "stage", postgresql_nulls_not_distinct=True
        ),
        Index("ix_reused_replies_shard_id", "shard_id"),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    tenant: Mapped[str]
    shard_id: Mapped[int] = mapped_column(BigInteger)
    stage: Mapped[str]
    connection: Mapped[str]
    model: Mapped[str]
    cell_id: Mapped[int] = mapped_column(BigInteger)
    run: Mapped[int] = mapped_column(SmallInteger)
    item: Mapped[int] = mapped_column(SmallInteger)
    unit: Mapped[int | None] = mapped_column(SmallInteger)
    trait: Mapped[int | None] = mapped_column(SmallInteger)
    judge: Mapped[int | None] = mapped_column(SmallInteger)
    origin: Mapped[str]
    input_tokens: Mapped[int | None]
    output_tokens: Mapped[int | None]
    usd: Mapped[float | None]
    """What the call would have cost; null where its price is unknown."""
    model_snapshot: Mapped[str | None]
    system_fingerprint: Mapped[str | None]
    asked_at: Mapped[datetime]
    """When the reply was asked for."""


class ShardReuse(Base):
    """What a finished shard was spared, by stage and model; filled in once, when it ends."""

    __tablename__ = "shard_reuse"

    shard_id: Mapped[int] = mapped_column(ForeignKey("shards.id", ondelete="CASCADE"), primary_key=True)
    stage: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    same_job: Mapped[int]
    """Replies from the job itself, and below those from the tenant's other jobs."""
    other_job: Mapped[int]
    input_tokens: Mapped[int] = mapped_column(BigInteger)
    output_tokens: Mapped[int] = mapped_column(BigInteger)
    usd: Mapped[float | None]
    """Null where no price is known."""
    unpriced: Mapped[int]
    """Replies whose price is unknown."""
    oldest: Mapped[datetime]
    """When the oldest was asked for."""
