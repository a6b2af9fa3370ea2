"""Differences of PersonaGym's scores over different personas, as a paper's are, of which only means and deviations are told."""

import math
from collections.abc import Mapping

from pydantic import Field

from app.domain.contract import Answer
from app.domain.personagym.scores import SCORES, Spread
from app.domain.statistics.resampling import student

PERSONA_SCORE, TASK_SCORE = "persona_score", "task_score"

Scores = Mapping[str | None, Spread]
"""A model's scores by task; its PersonaScore under ``None``."""

NO_DEVIATION = "too_few_personas: a standard deviation needs two personas"
NO_SPREAD = "unanimous: all personas of each have the same score"


class UnpairedDifference(Answer):
    """The difference of two means over different personas, a − b: Welch's interval, for other personas of both."""

    metric: str = Field(examples=[PERSONA_SCORE])
    task: str | None = Field(description="`null` for PersonaScore.")
    a: float
    b: float
    difference: float
    ci95: tuple[float, float] | None
    ci95_reason: str | None
    personas_a: int
    personas_b: int


def unpaired_differences(a: Scores, b: Scores) -> list[UnpairedDifference]:
    """The scores that both have: PersonaScore first, then the tasks in a's order.

    Args:
        a: The first model's.
        b: The second's.
    """
    tasks = [task for task in (None, *(name for name in a if name is not None)) if task in a and task in b]
    return [
        _difference(task, a[task], b[task])
        for task in tasks
        if a[task].value is not None and b[task].value is not None
    ]


def _difference(task: str | None, a: Spread, b: Spread) -> UnpairedDifference:
    one, other = a.value or 0.0, b.value or 0.0
    half = _half(a, b)
    widest = SCORES[1] - SCORES[0]
    return UnpairedDifference(
        metric=PERSONA_SCORE if task is None else TASK_SCORE,
        task=task,
        a=one,
        b=other,
        difference=one - other,
        ci95=(max(-widest, one - other - half), min(widest, one - other + half))
        if isinstance(half, float)
        else None,
        ci95_reason=half if isinstance(half, str) else None,
        personas_a=a.n,
        personas_b=b.n,
    )


def _half(a: Spread, b: Spread) -> float | str:
    """Half of Welch's interval, with Satterthwaite's degrees of freedom; or why there is none."""
    if a.sd is None or b.sd is None:
        return NO_DEVIATION
    first, second = a.sd**2 / a.n, b.sd**2 / b.n
    both = first + second
    if not both:
        return NO_SPREAD
    degrees = both**2 / (first**2 / (a.n - 1) + second**2 / (b.n - 1))
    return student(degrees) * math.sqrt(both)
