"""The part of the data model that has to do with batches; rows go when their job does."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    SmallInteger,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base


class Batch(Base):
    """Calls of one job to one model that go to a provider together; looked after by one worker at a time.

    ``lease_token`` is the fencing token, as of a shard.
    """

    __tablename__ = "batches"
    __table_args__ = (
        CheckConstraint("state IN ('formed', 'submitting', 'submitted', 'ended')", name="state"),
        UniqueConstraint("connection", "provider_id"),
        Index("ix_batches_job_id", "job_id"),
        Index("ix_batches_open", "due_at", postgresql_where=text("state <> 'ended'")),
        Index(
            "ix_batches_submitting", "connection", unique=True, postgresql_where=text("state = 'submitting'")
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    connection: Mapped[str]
    model: Mapped[str]
    calls: Mapped[int]
    state: Mapped[str] = mapped_column(server_default=text("'formed'"))
    """``submitting`` while the provider may have it and we don't know under which id: at most one a connection."""
    provider_id: Mapped[str | None]
    submissions: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How often it was begun to be submitted; with its id its name at the provider."""
    failures: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How often in a row the provider could not be asked, or did not take it."""
    errors: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How often in a row an internal error kept it from being looked after."""
    cut: Mapped[bool] = mapped_column(server_default=text("false"))
    """Whether a budget left no room for more calls that waited."""
    formed_at: Mapped[datetime] = mapped_column(server_default=func.now())
    submitted_at: Mapped[datetime | None]
    """When it was last begun to be submitted."""
    ended_at: Mapped[datetime | None]
    due_at: Mapped[datetime] = mapped_column(server_default=func.now())
    """When it is to be looked after next."""
    lease_token: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    lease_expires_at: Mapped[datetime | None]
    give_up_at: Mapped[datetime | None]
    """When a job that ends no longer waits for it."""


class BatchCall(Base):
    """A call that is wanted, sent or answered in a batch, until a shard has made rows of its answer."""

    __tablename__ = "batch_calls"
    __table_args__ = (
        UniqueConstraint("shard_id", "path"),
        Index("ix_batch_calls_batch_id", "batch_id", "custom_id"),
        Index(
            "ix_batch_calls_waiting",
            "job_id",
            "connection",
            "model",
            "id",
            postgresql_where=text("batch_id IS NULL"),
        ),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    """The id under which the call will be recorded in ``calls``."""
    tenant: Mapped[str] = mapped_column(server_default=text("'default'"))
    """The default is for workers of a release that knew no other; it goes with the next one."""
    job_id: Mapped[str]
    shard_id: Mapped[int] = mapped_column(ForeignKey("shards.id", ondelete="CASCADE"))
    batch_id: Mapped[int | None] = mapped_column(ForeignKey("batches.id", ondelete="SET NULL"))
    """Null while it waits for a batch."""
    connection: Mapped[str]
    model: Mapped[str]
    path: Mapped[str]
    """What it is for, as in the ids of direct calls."""
    custom_id: Mapped[str]
    """How the provider is told what it is for."""
    attempt: Mapped[int] = mapped_column(SmallInteger)
    request: Mapped[str]
    """JSON text in the provider's wire format."""
    tokens: Mapped[int] = mapped_column(BigInteger)
    nanos: Mapped[int] = mapped_column(BigInteger)
    """Tokens and billionths of a dollar that it takes at worst."""
    waits: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How many of the attempts before this one met a rate limit."""
    answer: Mapped[str | None]
    """The provider's words on it, as JSON text; empty where it said nothing."""


class BatchFile(Base):
    """A file with a batch's calls that a provider may have; its row is there before the file, and goes after it.

    ``id`` is in the file's name at the provider, so that it can be found where its upload was interrupted.
    """

    __tablename__ = "batch_files"
    __table_args__ = (
        Index("ix_batch_files_batch_id", "batch_id"),
        Index("ix_batch_files_unneeded", "due_at", postgresql_where=text("batch_id IS NULL")),
    )

    id: Mapped[UUID] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    connection: Mapped[str]
    batch_id: Mapped[int | None] = mapped_column(ForeignKey("batches.id", ondelete="SET NULL"))
    """Null once the file is needed no more."""
    file_id: Mapped[str | None]
    """Its id at the provider, if that is known."""
    made_at: Mapped[datetime] = mapped_column(server_default=func.now())
    due_at: Mapped[datetime] = mapped_column(server_default=func.now())
    """When it is to be deleted, or that is to be tried again."""
    failures: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How often the provider could not be asked to delete it."""
