"""Schemas of what answers say of verdicts that a judged text may have swayed."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.domain.contract import Answer

SuspicionAnswer = Annotated[
    Literal["text", "reply", "both"] | None,
    Field(
        description="What makes it doubtful: `text` (it addresses the judge), `reply` (under `hardened`: without the key"
        " word) or `both`."
    ),
]


class SuspicionCounts(Answer):
    """Doubtful judgements, by what makes them so."""

    total: int
    of: int = Field(description="Judgements there are.")
    text: int
    reply: int
    both: int


class SuspicionOfModel(Answer):
    """Those of one model's texts by one judge."""

    model: str
    judge: str
    verdicts: int = Field(description="On sentences.")
    grades: int = Field(description="Of PersonaGym responses.")


class WithoutSuspicion(Answer):
    """The figures without the doubtful judgements."""

    totals: list[dict[str, Any]] = Field(
        description="By model, and by model and task, in the form of `totals`."
    )
    persona_score_totals: list[dict[str, Any]]


class SuspicionSummary(Answer):
    """Judgements of texts that address the judge, or replied to as if they had. All of them are in the figures."""

    verdicts: SuspicionCounts
    grades: SuspicionCounts
    by_model: list[SuspicionOfModel] = Field(description="Where there are any.")
    without: WithoutSuspicion | None = Field(description="`null` where there are none.")
