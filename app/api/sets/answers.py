"""Schemas of answers about question sets and persona sets."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.api.results.answers import DiversityAnswer
from app.domain.contract import Answer, Page


class QuestionSet(Answer):
    """An immutable set of questions."""

    id: str = Field(examples=["qset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["question_set"]
    name: str | None
    questions: dict[str, dict[str, list[str]]] = Field(
        description="Questions by task id by persona description."
    )


class QuestionSetSummary(Answer):
    """A question set in a list."""

    id: str = Field(examples=["qset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["question_set"]
    name: str | None
    created_at: datetime
    personas: int
    questions: int


class QuestionSetList(Page[QuestionSetSummary]):
    """A page of question sets, newest first."""


class SetMember(Answer):
    """A persona of a set."""

    id: str
    description: str
    traits: dict[str, str] = Field(description="Level by dimension.")


class PersonaSet(Answer):
    """An immutable list of personas."""

    id: str = Field(examples=["pset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["persona_set"]
    name: str | None
    built_in: bool
    diversity: DiversityAnswer | None = Field(description="`null` for personas that were brought along.")
    personas: list[SetMember]


class PersonaSetSummary(Answer):
    """A persona set in a list."""

    id: str = Field(examples=["pset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"])
    object: Literal["persona_set"]
    name: str | None
    created_at: datetime
    personas: int


class PersonaSetList(Page[PersonaSetSummary]):
    """A page of persona sets, newest first."""
