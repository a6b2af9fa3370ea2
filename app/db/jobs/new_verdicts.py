"""What imported judges said of the texts of a new job, as rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.domain.judging.verdict import Verdict, VerdictStatus


@dataclass(frozen=True, slots=True)
class NewVerdicts:
    """Rows of ``verdicts`` of an imported judge: one for each sentence of a response, on one trait."""

    trait: int
    judge: int
    verdicts: Sequence[Verdict]

    @property
    def missing(self) -> int:
        """Those that were not given."""
        return sum(verdict.status is VerdictStatus.FAILED for verdict in self.verdicts)


class NewGrade(NamedTuple):
    """A row of ``grades`` of an imported judge; ``doubtful`` if the text addresses the judge."""

    judge: int
    score: int | None
    doubtful: bool
