"""A job's results, typed, and their form in the HTTP contract."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field

from pydantic import Field

from app.domain.contract import Answer
from app.domain.instruments.dimension import Scale
from app.domain.metrics.cell import CellMetrics, UnitCounts
from app.domain.metrics.metric import Metric, MetricSet
from app.domain.metrics.registry import METRICS
from app.domain.results.coverage import Coverage
from app.domain.results.missing import Corrected
from app.domain.statistics.groups import Influence

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class ResponseStatuses:
    """A cell's responses by what became of them, before any judging.

    Attributes:
        planned: Responses that the cell shall have.
        answered: Texts that are not refusals, empty ones included.
        refused: The model's refusals, recognised before judging; their sentences were not sent to a judge.
        filtered: Refused or stopped by the content filter of the model's provider; not judged.
        no_answer: Nothing but thoughts, or stopped for a reason that ends no answer; not judged.
        failed: Calls that never succeeded.
        empty: Answers without a single sentence.
        truncated: Answers that end at the longest length; judged like the others.
        refused_units: Sentences that the refusals removed.
    """

    planned: int = 0
    answered: int = 0
    refused: int = 0
    filtered: int = 0
    no_answer: int = 0
    failed: int = 0
    empty: int = 0
    truncated: int = 0
    refused_units: int = 0

    @classmethod
    def sum(cls, statuses: Iterable["ResponseStatuses"]) -> "ResponseStatuses":
        """Several cells' responses, added up."""
        return cls(*(sum(counts) for counts in zip(*map(astuple, statuses), strict=True)))


@dataclass(frozen=True, slots=True)
class CellResult:
    """The metrics of one cell on one dimension.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        task: The task's id.
        dimension: The dimension's id.
        level: Name of the persona's level on that dimension.
        runs: Runs planned for the cell.
        metrics: The metrics, over all judges.
        by_judge: Each judge's own metrics, by the judge's label; empty where they are not known.
        scale: The dimension's scale, on which ``metrics.mean`` lies.
        simulated: Whether the model or a judge was a simulated one.
        statuses: What became of the cell's responses; dimensions that share a text share it.
        influences: What the runs do to each metric over all judges, from which totals' intervals follow.
        coverage: Which share of its planned verdicts the metrics are of; ``None`` where that is not known.
        corrected: What may be missing can do to ACC_atom; ``None`` where that is not known.
    """

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    runs: int
    metrics: CellMetrics
    by_judge: Mapping[str, CellMetrics] = field(default_factory=dict)
    scale: Scale = field(default_factory=Scale)
    simulated: bool = False
    statuses: ResponseStatuses = field(default_factory=ResponseStatuses)
    influences: Mapping[str, Influence] = field(default_factory=dict, compare=False, repr=False)
    coverage: Coverage | None = None
    corrected: Corrected | None = None

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What identifies the cell, in the order in which cells are listed."""
        return self.model, self.persona, self.task, self.dimension, self.level

    def to_json(self) -> Json:
        """The cell in the contract's form."""
        return {
            "model": self.model,
            "persona": self.persona,
            "task": self.task,
            "dimension": self.dimension,
            "level": self.level,
            "simulated": self.simulated,
            "scale": {
                "minimum": self.scale.minimum,
                "maximum": self.scale.maximum,
                "levels": list(self.scale.levels),
            },
            "runs": self.runs,
            "generation": asdict(self.statuses),
            **_cell_metrics_json(self.metrics, self.scale),
            **_missing_json(self.coverage, self.corrected),
            "by_judge": {
                judge: _cell_metrics_json(own, self.scale) for judge, own in sorted(self.by_judge.items())
            },
        }


@dataclass(frozen=True, slots=True)
class Total:
    """Unweighted means over the cells of one group.

    Attributes:
        keys: What the group's cells have in common, such as model and task, in the order of the grouping.
        metrics: Means over cells; each n counts the cells that have the metric.
        cells: Cells in the group.
        units: The cells' units added up, by status.
        simulated: Whether any of the cells is simulated.
        statuses: What became of the cells' responses, added up; a text that several cells share counts once.
        coverage: Which share of the cells' planned verdicts the metrics are of; ``None`` where that is not known.
        corrected: As of cells; the bounds are over all cells, those without a metric included.
        matched: The same means over the cells of which every model has the metric; ``None`` where no model lacks what another has.
    """

    keys: Mapping[str, str]
    metrics: MetricSet
    cells: int
    units: UnitCounts
    simulated: bool = False
    statuses: ResponseStatuses = field(default_factory=ResponseStatuses)
    coverage: Coverage | None = None
    corrected: Corrected | None = None
    matched: MetricSet | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the keys that make the group."""
        return tuple(self.keys)

    def to_json(self) -> Json:
        """The total in the contract's form; ``left_out`` counts the cells that lack a metric."""
        return {
            "by": list(self.by),
            **self.keys,
            "simulated": self.simulated,
            "cells": self.cells,
            "generation": asdict(self.statuses),
            "metrics": _metrics_json(self.metrics, cells=self.cells),
            "matched": None if self.matched is None else _metrics_json(self.matched, cells=self.cells),
            "units": _units_json(self.units),
            **_missing_json(self.coverage, self.corrected),
        }


class Correlation(Answer):
    """How two metrics go together over cells (atomic paper, Tables 4 and 8)."""

    metrics: tuple[str, str] = Field(examples=[["acc", "acc_atom"]])
    r: Metric = Field(description="Pearson's; n counts the cells that have both.")


class LengthEffect(Answer):
    """How a metric goes with the length of responses over cells (atomic paper, section 6)."""

    task: str | None = Field(description="`null` for all tasks together.")
    metric: str = Field(examples=["ic_atom"])
    units: Metric = Field(description="Pearson's r with the mean number of sentences in a cell's responses.")
    scored_units: Metric = Field(description="The same with those that have a score.")


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """What one judge did in the whole job.

    Attributes:
        judge: The judge's label.
        units: The units that it was given, by status.
        simulated: Whether it was a simulated one.
    """

    judge: str
    units: UnitCounts
    simulated: bool = False

    def to_json(self) -> Json:
        """The judge in the contract's form."""
        return {"judge": self.judge, "simulated": self.simulated, "units": _units_json(self.units)}


@dataclass(frozen=True, slots=True)
class Results:
    """All cells, totals and judges of a job, each in a stable order.

    Attributes:
        cells: Sorted by model, persona, task, dimension and level.
        totals: Grouping by grouping, each sorted by its keys.
        judges: Sorted by label.
        correlations: Of the metrics, over all cells; Table 4's, then Table 8's.
        length_effects: Over all cells, then task by task.
    """

    cells: tuple[CellResult, ...]
    totals: tuple[Total, ...]
    judges: tuple[JudgeResult, ...]
    correlations: tuple[Correlation, ...]
    length_effects: tuple[LengthEffect, ...]

    @property
    def simulated(self) -> bool:
        """Whether any cell or judge is simulated, so that the figures describe no real model."""
        return any(cell.simulated for cell in self.cells) or any(judge.simulated for judge in self.judges)

    def to_json(self) -> Json:
        """The results in the contract's form: JSON types only, missing values ``None``, no NaN and no infinity."""
        return {
            "simulated": self.simulated,
            "cells": [cell.to_json() for cell in self.cells],
            "totals": [total.to_json() for total in self.totals],
            "judges": [judge.to_json() for judge in self.judges],
            "correlations": [found.model_dump(exclude_unset=True) for found in self.correlations],
            "length_effects": [found.model_dump(exclude_unset=True) for found in self.length_effects],
        }


def _cell_metrics_json(metrics: CellMetrics, scale: Scale) -> Json:
    return {
        "metrics": _metrics_json(metrics.metrics),
        "units": _units_json(metrics.units),
        "responses": {
            "total": metrics.responses.total,
            "without_scored_unit": metrics.responses.without_scored_unit,
            "with_one_scored_unit": metrics.responses.with_one_scored_unit,
        },
        "runs_used": metrics.runs.used,
        "scores": {str(scale.minimum + n): count for n, count in enumerate(metrics.scores)},
    }


def _missing_json(coverage: Coverage | None, corrected: Corrected | None) -> Json:
    return {
        "coverage": None if coverage is None else coverage.model_dump(),
        "corrected": None if corrected is None else corrected.model_dump(exclude_unset=True),
    }


def _units_json(units: UnitCounts) -> Json:
    return {
        "total": units.total,
        "scored": units.scored,
        "not_applicable": units.not_applicable,
        "refused": units.refused,
        "unparsed": units.unparsed,
        "failed": units.failed,
        "filtered": units.filtered,
    }


def _metrics_json(metrics: MetricSet, cells: int | None = None) -> Json:
    """All metrics by name, each with its parts.

    Args:
        metrics: The metrics.
        cells: For a total, how many cells it has: each metric then says how many of them it left out.
    """
    found: dict[str, object] = {}
    for metric in METRICS:
        own = metrics[metric.name].to_json()
        if cells is not None:
            own["left_out"] = cells - metrics[metric.name].n
        for part, name in zip(metric.parts, metric.names[1:], strict=True):
            own |= _part_json(part, metrics[name])
        found[metric.name] = own
    return found


def _part_json(name: str, part: Metric) -> Json:
    """A part's fields, which have its name before theirs."""
    return {name if key == "value" else f"{name}_{key}": found for key, found in part.to_json().items()}
