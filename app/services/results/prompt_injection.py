"""Prompt injection in results: the number of uncertain verdicts, and the values without them."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs.jobs import JobRow
from app.db.results import result_queries
from app.db.results.result_queries import ScoreRow
from app.domain.judging.prompt_injection import Suspicion
from app.domain.personagym.scores import Grade
from app.domain.results.contract import (
    SuspicionCounts,
    SuspicionOfModel,
    SuspicionSummary,
    WithoutSuspicion,
)
from app.services.job_context import JobContext

Scores = dict[tuple[int, int, int], list[ScoreRow]]
"""Score rows by (cell, trait, judge)."""

StoredGrade = tuple[Grade, str | None]
"""A grade, and what makes it doubtful."""


@dataclass(frozen=True, slots=True)
class Suspicious:
    """The doubtful verdicts and grades of a job, and what is left without them.

    Attributes:
        verdicts: How many verdicts, by (model's label, judge's label, suspicion).
        grades: How many grades, likewise.
        of_verdicts: Verdicts there are, doubtful or not.
        of_grades: Grades there are.
        scores: The other verdicts' scores; empty where no verdict is doubtful.
        other_grades: The other grades.
    """

    verdicts: Counter[tuple[str, str, Suspicion]] = field(default_factory=Counter)
    grades: Counter[tuple[str, str, Suspicion]] = field(default_factory=Counter)
    of_verdicts: int = 0
    of_grades: int = 0
    scores: Scores = field(default_factory=dict)
    other_grades: Sequence[Grade] = ()

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return bool(self.verdicts or self.grades)


async def read_suspicious(
    connection: AsyncConnection,
    job: JobRow,
    context: JobContext,
    scores: Scores,
    grades: Sequence[StoredGrade],
) -> Suspicious:
    """Counts what is doubtful, and reads the scores of the rest only if anything is.

    Args:
        connection: Where.
        job: The job.
        context: Its specification and cells.
        scores: All score rows of its personas.
        grades: All of its grades.
    """
    spec = context.spec
    rows = [row for of_judge in scores.values() for row in of_judge]
    verdicts: Counter[tuple[str, str, Suspicion]] = Counter()
    others: Scores = {}
    if any(row.suspicious for row in rows):
        others = defaultdict(list)
        async for row in result_queries.scores(connection, job.tenant, job.id, unsuspicious=True):
            others[row.cell, row.trait, row.judge].append(row)
        for cell, judge, why, count in await result_queries.suspicious_verdicts(
            connection, job.tenant, job.id
        ):
            if cell < len(context.cells):
                model = spec.models[context.cells[cell].model].label
                verdicts[model, spec.judges[judge].label, Suspicion(why)] += count
    return Suspicious(
        verdicts,
        Counter((grade.model, grade.judge, Suspicion(why)) for grade, why in grades if why is not None),
        sum(len(r.scores) + r.not_applicable + r.refused + r.unparsed + r.failed + r.filtered for r in rows),
        len(grades),
        others,
        [grade for grade, why in grades if why is None],
    )


def suspicion_summary(found: Suspicious, without: WithoutSuspicion | None) -> SuspicionSummary:
    """What results say of it.

    Args:
        found: What is doubtful.
        without: The figures without it, if there is any.
    """
    pairs = sorted({key[:2] for key in (*found.verdicts, *found.grades)})
    return SuspicionSummary(
        verdicts=SuspicionCounts.of_kinds(_by_kind(found.verdicts), found.of_verdicts),
        grades=SuspicionCounts.of_kinds(_by_kind(found.grades), found.of_grades),
        by_model=[
            SuspicionOfModel(
                model=model,
                judge=judge,
                verdicts=sum(found.verdicts[model, judge, why] for why in Suspicion),
                grades=sum(found.grades[model, judge, why] for why in Suspicion),
            )
            for model, judge in pairs
        ],
        without=without,
    )


def _by_kind(found: Counter[tuple[str, str, Suspicion]]) -> Counter[Suspicion]:
    counts: Counter[Suspicion] = Counter()
    for (_, _, why), count in found.items():
        counts[why] += count
    return counts
