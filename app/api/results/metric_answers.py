"""Schemas of metrics with their intervals, and of correlations."""

from typing import Any

from pydantic import BaseModel, Field, create_model

from app.domain.contract import Answer
from app.domain.metrics.definition import MetricDefinition
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import METRICS


def _schema_of(metric: MetricDefinition) -> type[Metric]:
    """A metric's schema: of one with parts these beside it, each with all that a metric has but ``left_out``."""
    if not metric.parts:
        return Metric
    fields: dict[str, Any] = {}
    for part in metric.parts:
        fields |= {part: (float | None, ...), f"{part}_n": (int, ...), f"{part}_reason": (str | None, None)}
        for interval in ("ci95", "ci95_runs"):
            fields[f"{part}_{interval}"] = (tuple[float, float] | None, None)
            fields[f"{part}_{interval}_reason"] = (str | None, None)
    name = metric.name.title().replace("_", "")
    words = f"{metric.label}, and its parts: {', '.join(metric.parts)}."
    return create_model(name, __base__=Metric, __doc__=words, **fields)


_ALL: dict[str, Any] = {
    metric.name: (
        _schema_of(metric),
        Field(description=f"{metric.label}. {metric.definition} {metric.source}."),
    )
    for metric in METRICS
}
_Metrics: type[BaseModel] = create_model("_Metrics", **_ALL)


class CellMetrics(_Metrics):
    """The metrics of a cell or total."""


class GroupKeys(BaseModel):
    """What the cells of a total have in common; of these keys those that its `by` names."""

    model: str = Field(description="Of every group.")
    persona: str | None = None
    task: str | None = None
    dimension: str | None = None
    level: str | None = None


class RunOfCell(Answer):
    """One run of a cell."""

    run: int
    instruction: int | None = Field(
        description="Number of the persona instruction, from 0; `null` if unknown."
    )


class JudgesDistances(Answer):
    """What one judge's scores say of the runs."""

    judge: str
    distances: list[list[float | None]] = Field(
        description="Run by run, in the order of `runs`; `null` where one of the two has no scored sentence.",
        examples=[[[0, 0.5], [0.5, 0]]],
    )


class RunDistances(Answer):
    """How far a cell's runs are apart: Wasserstein distances of their scores, 0 to the scale's width."""

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool
    width: int = Field(description="The greatest distance that there can be.")
    runs: list[RunOfCell] = Field(description="At most 100, the first ones.")
    runs_in_all: int = Field(description="Runs that have verdicts.")
    by_judge: list[JudgesDistances]
