"""What results say of verdicts that a judged text may have swayed."""

from collections import Counter
from typing import Any, Self

from pydantic import Field

from app.domain.contract import Answer
from app.domain.judging.prompt_injection import Suspicion


class SuspicionCounts(Answer):
    """Doubtful judgements, by what makes them so."""

    total: int
    of: int = Field(description="Judgements there are.")
    text: int
    reply: int
    both: int

    @classmethod
    def of_kinds(cls, found: Counter[Suspicion], of: int) -> Self:
        """The counts by kind, of so many judgements."""
        return cls(
            total=found.total(),
            of=of,
            text=found[Suspicion.TEXT],
            reply=found[Suspicion.REPLY],
            both=found[Suspicion.BOTH],
        )


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
