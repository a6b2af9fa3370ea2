"""PersonaGym's part of the results as a page shows it (PersonaGym paper, Table 1)."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.metrics.metric import Metric
from app.domain.personagym.agreement import GradeAgreement
from app.domain.personagym.scores import PersonaResult
from app.domain.results.comparison import PERSONA_SCORE
from app.domain.results.contract import Results
from app.domain.results.personagym_results import PersonaScoreTotal, range_over_models
from app.reports.views.summary import DECIMALS

PERSONA_ROWS = 40
"""Personas that are shown, those with the lowest PersonaScore; a job of 50 personas has as many for each model."""
HEAT_STEPS = 10
_LOWEST, _HIGHEST = 1, 5
"""The rubrics' scores."""


@dataclass(frozen=True, slots=True)
class PersonaScores:
    """A job's PersonaScores.

    Attributes:
        tasks: Ids of the tasks, in the job's order.
        tasks_in_paper: How many tasks the paper's PersonaScore is over.
        models: The totals, the highest PersonaScore first (see :meth:`compared`) and those without one last.
        personas: The scores by persona and model, the lowest first, at most ``PERSONA_ROWS``.
        personas_in_all: How many of these there are.
        agreement: The judges' agreement, by task.
        alone: Whether all of the job's tasks are PersonaGym's, so that PersonaScore is its main result.
    """

    tasks: Sequence[str]
    tasks_in_paper: int
    models: Sequence[PersonaScoreTotal]
    personas: Sequence[PersonaResult]
    personas_in_all: int
    agreement: Mapping[str, Sequence[GradeAgreement]]
    alone: bool

    @property
    def ranked(self) -> Sequence[PersonaScoreTotal]:
        """The models that have a PersonaScore, the highest first."""
        return [total for total in self.models if total.persona_score.value is not None]

    @staticmethod
    def compared(total: PersonaScoreTotal) -> Metric:
        """The figure by which models are ordered: PersonaScore, over the same personas for all of them."""
        matched = total.matched
        return matched if matched is not None and matched.value is not None else total.persona_score

    @property
    def highest(self) -> Mapping[str, float]:
        """The best mean of each task in which one model is better than all others, as far as the figures shown tell."""
        found = {}
        for task in self.tasks:
            values = [total.tasks[task].value for total in self.models]
            known = [value for value in values if value is not None]
            shown = sorted((round(value, DECIMALS) for value in known), reverse=True)
            if len(shown) > 1 and shown[0] > shown[1]:
                found[task] = max(known)
        return found

    @property
    def ranges(self) -> Mapping[str, float | None]:
        """How far models are apart in each task, and in PersonaScore."""
        return {
            task: range_over_models(total.tasks[task].value for total in self.models) for task in self.tasks
        } | {PERSONA_SCORE: range_over_models(total.persona_score.value for total in self.models)}


def persona_scores(results: Results) -> PersonaScores | None:
    """What the results say about PersonaGym's tasks; ``None`` if the job has none of them."""
    if not results.graded:
        return None
    rows = results.persona_scores
    tasks = list(rows[0].tasks) if rows else []
    agreement: dict[str, list[GradeAgreement]] = defaultdict(list)
    for found in results.judge_agreement:
        agreement[found.task].append(found)
    return PersonaScores(
        tasks=tasks,
        tasks_in_paper=rows[0].tasks_in_paper if rows else 0,
        models=sorted(results.persona_score_totals, key=_place),
        personas=sorted(rows, key=lambda row: _or_infinite(row.persona_score.value))[:PERSONA_ROWS],
        personas_in_all=len(rows),
        agreement=agreement,
        alone={cell.task for cell in results.cells} <= set(tasks),
    )


def score_step(score: float) -> int:
    """A score's colour, 0 (worst) to ``HEAT_STEPS`` - 1 (best)."""
    return min(HEAT_STEPS - 1, int(score_share(score) * HEAT_STEPS))


def score_share(score: float) -> float:
    """A score's place between the rubrics' lowest and highest, 0–1."""
    return (score - _LOWEST) / (_HIGHEST - _LOWEST)


def _place(total: PersonaScoreTotal) -> float:
    value = PersonaScores.compared(total).value
    return math.inf if value is None else -value


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value
