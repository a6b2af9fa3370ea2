"""What is measured of a job's cells, groups of cells and judges, before it is shown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from pydantic import ConfigDict, Field

from app.domain.contract import Answer
from app.domain.instruments.dimension import Scale
from app.domain.metrics.cell import MeasuredMetrics, UnitCounts
from app.domain.metrics.metric import Metric, MetricSet
from app.domain.providers.model import Provenance
from app.domain.results.coverage import NOTHING_PLANNED, Coverage
from app.domain.results.missing import NOT_CORRECTED, Corrected
from app.domain.statistics.variability import Variability


class ResponseStatuses(Answer):
    """A cell's responses by status before judging."""

    model_config = ConfigDict(frozen=True)

    planned: int
    answered: int = Field(description="Texts other than refusals, including empty ones.")
    refused: int = Field(description="By the model.")
    filtered: int = Field(0, description="Refused or stopped by the provider's content filter; not judged.")
    no_answer: int = Field(0, description="Only thoughts, or ended early for an unknown reason; not judged.")
    failed: int
    empty: int = Field(description="Answers without a sentence.")
    truncated: int = Field(0, description="Answers cut off at the maximum length; judged like the others.")
    refused_units: int = Field(description="Sentences not judged because they are refusals.")
    sentences: int = Field(0, description="Judged sentences of the answers.")
    unknown_tags: int = Field(0, description="Texts with unknown tags or special tokens.")
    unknown_finish_word: int = Field(0, description="Texts that ended for a reason that is not known.")
    cut_off: int = Field(0, description="Answers whose last sentence has no end.")
    repeated_sentences: int = Field(0, description="Sentences that repeat an earlier one of their answer.")
    left_out: int = Field(0, description="Of these two, sentences that were left out of judging.")
    role_breaks: int = Field(
        0, description="Sentences of answers in which the model says that it is one, or leaves its role."
    )
    refusal_check: int = Field(0, description="Texts of which a judge was asked whether they are refusals.")

    @classmethod
    def of(cls, **counts: int) -> Self:
        """The counts, 0 where none is given."""
        return cls(**dict.fromkeys(cls.model_fields, 0) | counts)

    @classmethod
    def sum(cls, statuses: Iterable["ResponseStatuses"]) -> Self:
        """Several cells' responses, added up."""
        found = list(statuses)
        return cls(**{name: sum(getattr(each, name) for each in found) for name in cls.model_fields})


NO_RESPONSES = ResponseStatuses.of()


@dataclass(frozen=True, slots=True)
class MeasuredCell:
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
        varied: How each metric over all judges varies, from which totals' intervals follow; empty where nothing is known of runs.
        coverage: Share of its planned verdicts that the metrics are based on; the default for figures that are only published.
        corrected: How missing responses and verdicts could affect ACC_atom; the default likewise.
        turns: Whether several of its texts are turns of one conversation.
    """

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    runs: int
    metrics: MeasuredMetrics
    by_judge: Mapping[str, MeasuredMetrics] = field(default_factory=dict)
    scale: Scale = field(default_factory=Scale)
    simulated: bool = False
    statuses: ResponseStatuses = NO_RESPONSES
    varied: Mapping[str, Variability] = field(default_factory=dict, compare=False, repr=False)
    coverage: Coverage = NOTHING_PLANNED
    corrected: Corrected = NOT_CORRECTED
    turns: bool = False

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What identifies the cell, in the order in which cells are listed."""
        return self.model, self.persona, self.task, self.dimension, self.level


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
        coverage: Share of the cells' planned verdicts that the metrics are based on.
        corrected: As of cells; the bounds are over all cells, those without a metric included.
        matched: The same means over the cells of which every model has the metric; ``None`` where no model lacks what another has.
    """

    keys: Mapping[str, str]
    metrics: MetricSet
    cells: int
    units: UnitCounts
    simulated: bool
    statuses: ResponseStatuses
    coverage: Coverage
    corrected: Corrected
    matched: MetricSet | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the keys that make the group."""
        return tuple(self.keys)


class Correlation(Answer):
    """The correlation of two metrics over cells (atomic paper, Tables 4 and 8)."""

    metrics: tuple[str, str] = Field(examples=[["acc", "acc_atom"]])
    r: Metric = Field(description="Pearson's; n counts the cells that have both.")


class LengthEffect(Answer):
    """The correlation of a metric with response length over cells (atomic paper, section 6)."""

    task: str | None = Field(description="`null` for all tasks together.")
    metric: str = Field(examples=["ic_atom"])
    units: Metric = Field(description="Pearson's r with the mean number of sentences in a cell's responses.")
    scored_units: Metric = Field(description="The same with scored sentences.")


class JudgeResult(Answer):
    """One judge's verdicts in the whole job."""

    judge: str
    simulated: bool = Field(description="Whether the judge is simulated.")
    imported: Provenance | None = Field(
        None, description="For an imported judge: where its verdicts come from. Else missing."
    )
    units: UnitCounts


@dataclass(frozen=True, slots=True)
class Measured:
    """All cells, totals and judges of a job, each in a stable order.

    Attributes:
        cells: Sorted by model, persona, task, dimension and level.
        totals: Grouping by grouping, each sorted by its keys.
        judges: Sorted by label.
        correlations: Of the metrics, over all cells; Table 4's, then Table 8's.
        length_effects: Over all cells, then task by task.
    """

    cells: tuple[MeasuredCell, ...]
    totals: tuple[Total, ...]
    judges: tuple[JudgeResult, ...]
    correlations: tuple[Correlation, ...]
    length_effects: tuple[LengthEffect, ...]

    @property
    def simulated(self) -> bool:
        """Whether any cell or judge is simulated, so that the figures describe no real model."""
        return any(cell.simulated for cell in self.cells) or any(judge.simulated for judge in self.judges)
