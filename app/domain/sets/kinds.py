"""The kinds of sets: what one is called, where it is, and how it is shown; another kind is another entry."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from app.domain.content_hash import hash_of
from app.domain.contract import Answer, Page
from app.domain.sets.contract import (
    KeptSet,
    PersonaSet,
    PersonaSetList,
    PersonaSetSummary,
    QuestionSet,
    QuestionSetList,
    QuestionSetSummary,
    RubricSet,
    RubricSetList,
    RubricSetSummary,
)

Shown_co = TypeVar("Shown_co", bound=KeptSet, covariant=True)


@dataclass(frozen=True, slots=True)
class SetKind(Generic[Shown_co]):
    """A kind of set.

    Attributes:
        prefix: What the ids of such sets begin with.
        noun: What people call one.
        model: One as it is shown.
        summary: One as a list shows it.
        page: A page of a list.
        sizes: What a list counts of one.
        is_made: Whether jobs make such sets, not only people.
    """

    prefix: str
    noun: str
    model: type[Shown_co]
    summary: type[Answer]
    page: type[Page[Any]]
    sizes: tuple[str, ...]
    is_made: bool = True

    @property
    def name(self) -> str:
        """What programs call one."""
        return self.noun.replace(" ", "_")

    @property
    def folder(self) -> str:
        """What addresses call them."""
        return self.noun.replace(" ", "-") + "s"

    @property
    def path(self) -> str:
        """Where the API has them."""
        return f"/v1/{self.folder}"

    @property
    def id_form(self) -> str:
        """The form of their ids, a regular expression."""
        return rf"{self.prefix}_[0-9a-f]{{32}}"


QUESTION_SET = SetKind(
    "qset", "question set", QuestionSet, QuestionSetSummary, QuestionSetList, ("personas", "questions")
)
PERSONA_SET = SetKind("pset", "persona set", PersonaSet, PersonaSetSummary, PersonaSetList, ("personas",))
RUBRIC_SET = SetKind(
    "rset", "rubric set", RubricSet, RubricSetSummary, RubricSetList, ("tasks",), is_made=False
)

KINDS: tuple[SetKind[KeptSet], ...] = (QUESTION_SET, PERSONA_SET, RUBRIC_SET)
"""In the order in which their rows are locked."""


def kind_of(set_id: str) -> SetKind[KeptSet] | None:
    """The kind of the set of an id; ``None`` if the id is of none."""
    prefix = set_id.partition("_")[0]
    return next((kind for kind in KINDS if kind.prefix == prefix), None)


def set_id(kind: SetKind[KeptSet], content: object) -> str:
    """Return the id of a set: a hash of its content."""
    return f"{kind.prefix}_{hash_of(content)[:32]}"
