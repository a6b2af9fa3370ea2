"""The tables of question sets, persona sets and rubric sets, and which jobs have to do with which."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.tables import Base


class QuestionSet(Base):
    """An immutable set of questions by persona and task, named by its content."""

    __tablename__ = "question_sets"
    __table_args__ = (Index("ix_question_sets_newest", "tenant", "created_at", "id"),)

    tenant: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    content: Mapped[dict[str, Any]]
    """Questions by task by persona description."""
    posted: Mapped[bool]
    """Whether somebody brought it along; else it goes with the last job that has to do with it."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class PersonaSet(Base):
    """An immutable list of personas, named by its content."""

    __tablename__ = "persona_sets"
    __table_args__ = (Index("ix_persona_sets_newest", "tenant", "created_at", "id"),)

    tenant: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    content: Mapped[list[Any]] = mapped_column(JSONB)
    """Personas in their order: id, description, traits."""
    diversity: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """How alike generated personas are; null for those that were brought along."""
    posted: Mapped[bool]
    """As of a question set."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class RubricSet(Base):
    """An immutable set of rubrics and prompts, named by its content."""

    __tablename__ = "rubric_sets"
    __table_args__ = (Index("ix_rubric_sets_newest", "tenant", "created_at", "id"),)

    tenant: Mapped[str] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    content: Mapped[dict[str, Any]]
    """Words by field by task id, and templates."""
    posted: Mapped[bool]
    """As of a question set; no job makes one, so it is always true."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


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
