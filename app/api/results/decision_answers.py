"""Schemas of baselines, comparisons and gates."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.jobs.answers import Completeness
from app.api.results.metric_answers import CellMetrics, Correlation, GroupKeys, Metric
from app.domain.contract import Answer


class BaselineSource(Answer):
    """A paper whose figures these are."""

    id: Literal["atomic", "personagym"]
    title: str
    year: int = Field(description="Of the paper.")
    tables: str
    judges: list[str] | None = Field(description="The judges' snapshots, where the paper tells them.")


class BaselineCell(BaseModel):
    """One published cell: model × persona × task × dimension."""

    source: Literal["atomic"]
    model: str = Field(examples=["GPT-4o"])
    persona: str = Field(examples=["E-neutral"])
    task: str = Field(examples=["essay"])
    dimension: str
    level: str
    simulated: bool
    runs: int
    metrics: CellMetrics


class BaselineTotal(GroupKeys):
    """Unweighted means over published cells; the group's keys stand beside `by`."""

    source: Literal["atomic"]
    by: list[str]
    cells: int
    simulated: bool
    metrics: CellMetrics


class BaselineScores(BaseModel):
    """A row of PersonaGym's Table 1: mean, standard deviation and interval over 200 personas."""

    source: Literal["personagym"]
    model: str
    simulated: bool
    tasks_in_paper: int
    persona_score: Metric | None = Field(None, description="Absent where one task was asked for.")
    tasks: dict[str, Metric]


class Baselines(Answer):
    """Published figures in the form of results."""

    object: Literal["baselines"]
    published: Literal[True]
    note: str = Field(description="What these figures can and cannot show.")
    sources: list[BaselineSource]
    cells: list[BaselineCell]
    totals: list[BaselineTotal]
    correlations: list[Correlation] = Field(description="Over the cells that pass the filters.")
    persona_scores: list[dict[str, Any]] = Field(description="Empty: no paper tells them by persona.")
    persona_score_totals: list[BaselineScores]


class ComparedSide(Answer):
    """One of the two that were compared."""

    job: str | None
    baseline: str | None
    model: str
    completeness: Completeness
    coverage: float | None = Field(
        description="Share of the model's planned verdicts (grades) that its figures are of; `null` where it is not known."
    )
    simulated: bool


class Evidence(Answer):
    """How sure a difference is, for what is drawn anew: personas with all their pairs, or items."""

    ci95: tuple[float, float] | None = Field(examples=[[0.07, 0.18]])
    ci95_reason: str | None = Field(description="Why there is no interval.")
    p_value: float | None = Field(description="Two-sided, by permutation of signs over personas, or items.")
    p_value_holm: float | None = Field(
        description="Corrected (Holm) for all metrics over all tasks, or for all metrics in single tasks."
    )
    smallest_p_value: float | None = Field(description="The smallest that so few of them can give.")
    smallest_detectable: float | None = Field(
        description="The true difference that this comparison would find in 80 % of cases, at 5 %; `null` where there is none."
    )
    smallest_detectable_reason: str | None = Field(
        description="Why there is none: so few personas, or items, show nothing, or all differ alike."
    )


class EvidenceOverItems(Evidence):
    """How sure a difference is for these very personas, if they were asked other items like these."""

    items: int = Field(description="Items, each persona's for itself.")


class Difference(Evidence):
    """One metric's paired difference, a − b, and how sure it is over personas like these."""

    metric: str = Field(examples=["acc_atom"])
    task: str | None = Field(description="`null` for all tasks together.")
    a: float = Field(description="Mean of a's figures that have a partner.")
    b: float
    difference: float = Field(examples=[0.12])
    pairs: int = Field(description="Pairs of figures.")
    personas: int = Field(description="Personas that they come from.")
    over_items: EvidenceOverItems | None = Field(description="Only where the pairs are items.")


class UnpairedFigure(Answer):
    """A figure that has no partner."""

    metric: str
    persona: str
    task: str | None
    dimension: str | None
    item: str | None = Field(description="What was asked, where the pairs are items.")
    reason: str


class Comparison(Answer):
    """Paired differences of two models."""

    object: Literal["comparison"]
    a: ComparedSide
    b: ComparedSide
    pairing: Literal["cells", "items"]
    simulated: bool
    differences: list[Difference]
    left_out: list[UnpairedFigure]
    notes: list[str] = Field(description="What a reader must know to judge the differences.")


class GateCheck(Answer):
    """One figure held to one threshold."""

    threshold: str = Field(examples=["acc_atom>=0.8"])
    of: dict[str, str] = Field(
        description="What the figure is of.", examples=[{"model": "openai/gpt-6-luna"}]
    )
    verdict: Literal["pass", "fail", "inconclusive"]
    reason: str
    value: float | None
    ci95: tuple[float, float] | None
    coverage: float | None = Field(
        description="Share of the planned verdicts, grades or cells, whichever is smaller, that the figure is of;"
        " `null` of refusal rates, and where it was not counted."
    )


class Gate(Answer):
    """`fail` if any check fails, else `inconclusive` if any is, else `pass`."""

    job: str
    object: Literal["gate"]
    verdict: Literal["pass", "fail", "inconclusive"]
    minimum_coverage: float = Field(description="A figure of less than this is inconclusive.")
    checks: list[GateCheck]
