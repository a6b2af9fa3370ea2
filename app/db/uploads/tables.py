"""The tables of uploads and their records."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, Integer, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base


class UploadRow(Base):
    """A file of responses that arrives in parts; see :class:`app.domain.uploads.contract.Upload`."""

    __tablename__ = "uploads"
    __table_args__ = (
        CheckConstraint("status IN ('receiving', 'reading', 'ready', 'invalid')", name="status"),
        CheckConstraint("received <= size", name="received"),
        Index("ix_uploads_newest", "tenant", "created_at", "id"),
        Index("ix_uploads_expires_at", "expires_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    name: Mapped[str | None]
    file_metadata: Mapped[list[Any]] = mapped_column(JSONB, server_default=text("'[]'"))
    """What the client said of the file: pairs of name and value, in its order."""
    status: Mapped[str]
    size: Mapped[int] = mapped_column(BigInteger)
    received: Mapped[int] = mapped_column(BigInteger)
    records: Mapped[int]
    lines: Mapped[int] = mapped_column(BigInteger)
    """Lines read so far."""
    tail: Mapped[bytes]
    """The beginning of the next line."""
    skipping: Mapped[bool]
    """Whether the rest of a line is passed over that is too long."""
    format: Mapped[str | None]
    """The file's form, once its first bytes are there."""
    unpacked: Mapped[int] = mapped_column(BigInteger, server_default="0")
    """Of a packed file: bytes of what it holds that were read."""
    reading_until: Mapped[datetime | None]
    """Of a packed file that is read: when somebody else goes on, unless whoever reads it has said more."""
    error_count: Mapped[int]
    errors: Mapped[list[Any]] = mapped_column(JSONB)
    rules: Mapped[dict[str, Any]] = mapped_column(JSONB)
    """Versions of the rules that its texts are read by."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]


class UploadRecord(Base):
    """A response of an upload, with its sentences."""

    __tablename__ = "upload_records"

    upload_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    """Its place among the records, from 0."""
    tenant: Mapped[str]
    line: Mapped[int] = mapped_column(BigInteger)
    persona: Mapped[str]
    task: Mapped[str]
    model: Mapped[str]
    item: Mapped[str | None]
    run: Mapped[int | None]
    instruction: Mapped[int | None]
    question: Mapped[str | None]
    status: Mapped[str]
    text: Mapped[str]
    thoughts: Mapped[str | None]
    error: Mapped[str | None]
    unit_starts: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    unit_ends: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    judged: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    """What imported judges said of it; see :mod:`app.domain.uploads.judged`."""
    notes: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    """What is odd about the text (:class:`app.domain.judging.text_notes.TextNotes`); null if nothing."""
    conversation: Mapped[str | None]


class UploadPart(Base):
    """Bytes of an upload that can be read only once all of it is there; they are kept no longer."""

    __tablename__ = "upload_parts"

    upload_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True)
    start: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    """Where in the file it begins."""
    tenant: Mapped[str]
    size: Mapped[int]
    data: Mapped[bytes]
    """Stored as it is: it is compressed, and any of it can be read without the rest."""
