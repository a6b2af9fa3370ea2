"""The tables of what people say of a job's sentences and responses; rows go when their job does."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, SmallInteger, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base

SUBJECT = (
    *("job_id", "annotator", "dimension", "cell", "run", "item", "unit"),
    *("other_cell", "other_run", "other_item", "other_unit"),
)
"""What tells an annotation from any other: by whom it is, and about what."""


class AnnotationRow(Base):
    """One annotator's answer about a sentence, a pair of sentences or a response; see :mod:`app.domain.labels.annotation`."""

    __tablename__ = "annotations"
    __table_args__ = (
        CheckConstraint("answer IN ('scored', 'not_applicable', 'first', 'second', 'equal')", name="answer"),
        CheckConstraint("(answer = 'scored') = (score IS NOT NULL)", name="score"),
        CheckConstraint("(answer IN ('first', 'second', 'equal')) = (other_cell IS NOT NULL)", name="pair"),
        Index("ix_annotations_job", "job_id", "id"),
        Index("ix_annotations_tenant", "tenant", "id"),
        Index("ix_annotations_subject", *SUBJECT, unique=True, postgresql_nulls_not_distinct=True),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    annotator: Mapped[str]
    dimension: Mapped[str | None]
    """Null where a PersonaGym task's rubric was used."""
    cell: Mapped[int]
    """Ordinal among the job's cells."""
    run: Mapped[int] = mapped_column(SmallInteger)
    item: Mapped[int] = mapped_column(SmallInteger)
    unit: Mapped[int | None] = mapped_column(SmallInteger)
    """Null where it is about the whole response."""
    other_cell: Mapped[int | None]
    other_run: Mapped[int | None] = mapped_column(SmallInteger)
    other_item: Mapped[int | None] = mapped_column(SmallInteger)
    other_unit: Mapped[int | None] = mapped_column(SmallInteger)
    """A pair's second sentence, which comes after the first in the order of cell, run, item and unit."""
    answer: Mapped[str]
    score: Mapped[int | None] = mapped_column(SmallInteger)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class FlagRow(Base):
    """One annotator's flag on a sentence or response; see :mod:`app.domain.labels.flags`."""

    __tablename__ = "flags"
    __table_args__ = (
        CheckConstraint("score IS NULL OR NOT not_applicable", name="score"),
        Index(
            "ix_flags_subject",
            *("job_id", "cell", "run", "item", "unit", "annotator"),
            unique=True,
            postgresql_nulls_not_distinct=True,
        ),
        Index("ix_flags_newest", "tenant", "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    annotator: Mapped[str]
    cell: Mapped[int]
    """Ordinal among the job's cells."""
    run: Mapped[int] = mapped_column(SmallInteger)
    item: Mapped[int] = mapped_column(SmallInteger)
    unit: Mapped[int | None] = mapped_column(SmallInteger)
    """Null where it is about the whole response."""
    dimension: Mapped[str | None]
    score: Mapped[int | None] = mapped_column(SmallInteger)
    """What the sentence should have got."""
    not_applicable: Mapped[bool]
    """Whether it should have got no score: the judges' filtering option."""
    note: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class LabellingRound(Base):
    """A sample of a job's sentences, responses or pairs of sentences that people are shown."""

    __tablename__ = "labelling_rounds"
    __table_args__ = (
        CheckConstraint("kind IN ('sentences', 'responses', 'pairs')", name="kind"),
        Index("ix_labelling_rounds_draw", "job_id", "kind", "dimension", "size", "seed", unique=True),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    kind: Mapped[str]
    dimension: Mapped[str]
    """Empty where responses are graded by their tasks' rubrics."""
    size: Mapped[int]
    """How many were asked for; there may be fewer."""
    seed: Mapped[int] = mapped_column(BigInteger)
    things: Mapped[list[Any]] = mapped_column(JSONB)
    """Each a list of one place or two: [cell, run, item, unit], the unit null of a response."""
    strata: Mapped[list[Any]] = mapped_column(JSONB)
    """What was drawn of how many, by score, or of responses by model; nobody who labels is shown it."""
    answers_each: Mapped[int | None] = mapped_column(SmallInteger)
    """How many people answer each thing; null where everybody answers all."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
