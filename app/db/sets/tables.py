"""The tables of question sets, persona sets and rubric sets, and which jobs have to do with which."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from app.db.tables import Base


class KeptSet(Base):
    """What the tables of all kinds of sets have."""

    __abstract__ = True

    tenant: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    content: Mapped[Any] = mapped_column(JSONB, nullable=False)
    posted: Mapped[bool]
    """Whether somebody brought it along; else it goes with the last job that has to do with it."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Index]:  # noqa: N805 - SQLAlchemy calls it with the class
        return (Index(f"ix_{cls.__tablename__}_newest", "tenant", "created_at", "id"),)


class QuestionSet(KeptSet):
    """An immutable set of questions; its content has them by task by persona description."""

    __tablename__ = "question_sets"


class PersonaSet(KeptSet):
    """An immutable list of personas; its content has them in their order: id, description, traits."""

    __tablename__ = "persona_sets"

    diversity: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """How alike generated personas are; null for those that were brought along."""


class RubricSet(KeptSet):
    """An immutable set of rubrics and prompts; its content has words by field by task id, and templates.

    No job makes one, so all are posted.
    """

    __tablename__ = "rubric_sets"


class Exemplars(Base):
    """One question's exemplars, made for a rubric by a reasoner or brought along; they go with their question set."""

    __tablename__ = "exemplars"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant", "set_id"], ["question_sets.tenant", "question_sets.id"], ondelete="CASCADE"
        ),
        Index("ix_exemplars_key", "tenant", "key"),
    )

    tenant: Mapped[str] = mapped_column(primary_key=True)
    set_id: Mapped[str] = mapped_column(primary_key=True)
    place: Mapped[str] = mapped_column(primary_key=True)
    """Persona, task and question in the set; see :func:`app.domain.personagym.exemplars.place_of`."""
    key: Mapped[str] = mapped_column(primary_key=True)
    """By which a job finds them; see :func:`app.domain.personagym.exemplars.exemplar_key`."""
    reasoner: Mapped[str | None]
    """Who made them; null if they were brought along."""
    content: Mapped[list[Any]] = mapped_column(JSONB)
    """The five texts, from score 1 to 5."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class JobSet(Base):
    """Which sets a job has to do with: it made them, or it named them."""

    __tablename__ = "job_sets"
    __table_args__ = (Index("ix_job_sets_set_id", "tenant", "set_id"),)

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    set_id: Mapped[str] = mapped_column(primary_key=True)
    tenant: Mapped[str]
    made: Mapped[bool]
