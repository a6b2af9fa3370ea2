"""The figure that a schedule watches, from a job's results."""

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean

from app.domain.metrics.registry import BY_NAME, RANGES
from app.domain.personagym.scores import SCORES
from app.domain.results.contract import Results
from app.domain.results.gate import (
    PERSONA_SCORE,
    REFUSAL_RATE,
    GateCheck,
    Threshold,
    judge_gate,
    parse_threshold,
)
from app.domain.watching.drift import RESOLUTION

_PARTS = ("task", "level", "dimension", "persona")


def figure_of(text: str) -> Threshold:
    """The watched figure from its text, in the form of a threshold without a bound.

    Raises:
        ValueError: If there is no such figure.
    """
    threshold = parse_threshold(f"{text}>=0")
    if threshold.metric == REFUSAL_RATE or threshold.reference is not None:
        raise ValueError("write it like acc_atom, mean@task=essay,level=low or persona_score@model=LABEL")
    return threshold


def figure_in(results: Results, figure: Threshold, *, anchors: bool = False) -> GateCheck | None:
    """The watched figure; ``None`` if the results have none of that description.

    Args:
        results: The results.
        figure: Which.
        anchors: Whether they are those of anchors: whoever wrote these, and with the mean of all writers' figures.
    """
    if not anchors:
        return next(iter(judge_gate(results, [figure], "runs", 0.0).checks), None)
    own = {key: value for key, value in figure.where.items() if key != "model"}
    checks = judge_gate(results, [replace(figure, where=own)], "runs", 0.0).checks
    values = [check.value for check in checks if check.value is not None]
    if not values:
        return next(iter(checks), None)
    return checks[0].model_copy(update={"value": fmean(values)})


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
