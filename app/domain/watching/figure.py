"""The figure that a schedule watches, from a job's results."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from app.domain.metrics.registry import BY_NAME, RANGES
from app.domain.personagym.scores import SCORES
from app.domain.results.contract import Results
from app.domain.results.gate import (
    PERSONA_SCORE,
    REFUSAL_RATE,
    Threshold,
    judge_gate,
    parse_threshold,
    threshold_figures,
)
from app.domain.watching.drift import RESOLUTION

_FORM = re.compile(r"[a-z_]+(@[^<>]+)?")
_PARTS = ("task", "level", "dimension", "persona")


def figure_of(text: str) -> Threshold:
    """The watched figure from its text, in the form of a threshold without a bound.

    Raises:
        ValueError: If there is no such figure.
    """
    threshold = parse_threshold(f"{text}>=0") if _FORM.fullmatch(text) else None
    if threshold is None or threshold.metric == REFUSAL_RATE:
        raise ValueError("write it like acc_atom, mean@task=essay,level=low or persona_score@model=LABEL")
    return threshold


@dataclass(frozen=True, slots=True)
class Watched:
    """The watched figure of a run.

    Attributes:
        value: The figure.
        n: Cells that it is a mean of; of a PersonaScore, personas.
        left_out: Cells or personas without it.
        coverage: Share of the planned verdicts, grades or cells (whichever is smaller) behind it, 0-1; ``None`` if not counted.
    """

    value: float
    n: int
    left_out: int
    coverage: float | None


def figure_in(results: Results, figure: Threshold, *, anchors: bool = False) -> Watched | str:
    """The watched figure, or why there is none.

    Args:
        results: The results.
        figure: Which.
        anchors: Whether they are those of anchors: whoever wrote these, and with the mean of all writers' figures.
    """
    if anchors:
        own = {key: value for key, value in figure.where.items() if key != "model"}
        figure = replace(figure, where=own)
    found = [(metric, share) for _, metric, share in threshold_figures(results, figure)]
    values = [metric.value for metric, _ in found if metric.value is not None]
    if not values:
        return judge_gate(results, [figure], "runs", 0.0).checks[0].reason
    return Watched(
        fmean(values),
        sum(metric.n for metric, _ in found),
        sum(metric.left_out or 0 for metric, _ in found),
        min((share for _, share in found if share is not None), default=None),
    )


def by_persona(results: Results, figure: Threshold) -> dict[str, float]:
    """The watched figure of each persona, of all models; empty for what neither cells nor PersonaScores have."""
    found: dict[str, list[float]] = {}
    for persona, value in _of_personas(results, figure):
        if value is not None:
            found.setdefault(persona, []).append(value)
    return {persona: fmean(values) for persona, values in sorted(found.items())}


def _of_personas(results: Results, figure: Threshold) -> Iterator[tuple[str, float | None]]:
    where = figure.where
    if figure.metric == PERSONA_SCORE:
        for row in results.persona_scores:
            task = row.tasks.get(where["task"]) if "task" in where else row.persona_score
            yield row.persona, None if task is None else task.value
    elif figure.metric in BY_NAME:
        for cell in results.cells:
            if all(getattr(cell, key) == where[key] for key in _PARTS if key in where):
                yield cell.persona, cell.metrics[figure.metric].value


def resolution_of(results: Results, figure: Threshold) -> float:
    """The standard deviation that runs' figures are taken to have at least."""
    if figure.metric == PERSONA_SCORE:
        low, high = float(min(SCORES)), float(max(SCORES))
    else:
        ends = RANGES.get(figure.metric, (0.0, 1.0))
        scales = [(cell.scale.minimum, cell.scale.maximum) for cell in results.cells]
        low, high = ends or (float(min(s[0] for s in scales)), float(max(s[1] for s in scales)))
    return RESOLUTION * (high - low)
