"""What there is to know of one metric: whatever computes, lists, names, draws or exports metrics asks here."""

import enum
from collections.abc import Callable
from dataclasses import dataclass

from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import CellScores, RunValues

UNIT_RANGE = (0.0, 1.0)


class Family(enum.Enum):
    """Metrics that are shown together."""

    SCORE = "score"
    """The score itself, which is good where it lies in the persona's level."""
    RESPONSE = "response"
    """Of whole responses: what the atomic metrics refine."""
    ATOMIC = "atomic"
    """Of single sentences."""
    CORRECTED = "corrected"
    """The papers' metrics without what chance, or a small number of sentences or runs, does to them; not in the papers."""


class Estimate(enum.Enum):
    """How a metric's interval follows from a cell's runs; see :mod:`app.domain.statistics.cells`."""

    MEAN = "mean"
    """The metric is the mean of the runs' values: a percentile interval over resampled runs."""
    ROOT = "root"
    """One minus the root of the mean of the runs' values, on the scale of a spread: a percentile interval like a mean's."""
    SPREAD = "spread"
    """One minus the spread of the runs' values: a studentized interval for the spread."""
    SAMPLE_SPREAD = "sample_spread"
    """The same of the unbiased standard deviation."""
    DISTANCES = "distances"
    """One minus the distances of the runs' distributions, and so are its parts: a studentized interval for the distances."""
    EXCESS = "excess"
    """One minus what the runs' distances exceed those of chance by: a percentile interval."""


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A metric.

    Attributes:
        name: In results, thresholds, and the columns of exports.
        label: As the papers write it; what follows the underscore is printed as a subscript.
        summary: What it says of a model, in a few words.
        definition: What it is, for readers of a report.
        source: Where it comes from.
        family: What it is shown with.
        estimate: How its interval is estimated.
        compute: The metric of a cell by one judge, followed by its parts if it has any.
        by_run: The runs' values, of which ``estimate`` takes the mean or the spread; ``None`` for distances.
        range: Its least and greatest value; ``None`` for the dimension's scale.
        range_in_cell: The same in a cell, where it depends on the persona's level.
        n: What its n counts in a cell, one and many.
        parts: What it falls into: their names after the metric's own.
    """

    name: str
    label: str
    summary: str
    definition: str
    source: str
    family: Family
    estimate: Estimate
    compute: Callable[[CellScores], Metric | tuple[Metric, ...]]
    by_run: Callable[[CellScores], RunValues] | None = None
    range: tuple[float, float] | None = UNIT_RANGE
    range_in_cell: Callable[[CellScores], tuple[float, float]] | None = None
    n: tuple[str, str] = ("run", "runs")
    parts: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Its own name and those of its parts, as metrics of their own."""
        return self.name, *(f"{self.name}_{part}" for part in self.parts)

    @property
    def printed_range(self) -> str:
        """Its range as a reader sees it; empty for the dimension's scale."""
        return "" if self.range is None else "–".join(f"{end:g}".replace("-", "−") for end in self.range)

    def measure(self, scores: CellScores) -> dict[str, Metric]:
        """The metric of a cell by one judge, and its parts, by name."""
        found = self.compute(scores)
        return dict(zip(self.names, found if isinstance(found, tuple) else (found,), strict=True))
