"""Schemas of answers about results."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from app.api.results.agreement_answers import HumanAgreement
from app.api.results.metric_answers import (
    CellMetrics,
    GroupKeys,
)
from app.domain.contract import Answer, Completeness
from app.domain.personagym.diversity import Diversity
from app.domain.providers.usage import Cost, FailedCalls, JobUsage, ReuseAnswer
from app.domain.results.coverage import Coverage
from app.domain.results.grouping_check import JudgingCheck
from app.domain.results.missing import Corrected
from app.domain.results.prompt_injection import SuspicionSummary
from app.domain.results.results import Correlation, LengthEffect


class UnitCounts(Answer):
    """Judged sentences by what became of the judgement."""

    total: int
    scored: int
    not_applicable: int
    refused: int
    unparsed: int
    failed: int
    filtered: int = Field(0, description="Refused by the content filter of the judge's provider.")


class ScaleAnswer(Answer):
    """Integer scores from `minimum` to `maximum`, cut into equal levels."""

    minimum: int
    maximum: int
    levels: list[str] = Field(description="Lowest first.", examples=[["low", "neutral", "high"]])


class ResponseStatuses(Answer):
    """A cell's responses by what became of them before judging."""

    planned: int
    answered: int = Field(description="Texts that are not refusals, empty ones included.")
    refused: int = Field(description="By the model.")
    filtered: int = Field(0, description="Refused or stopped by the provider's content filter; not judged.")
    no_answer: int = Field(
        0, description="Nothing but thoughts, or stopped for a reason that ends no answer; not judged."
    )
    failed: int
    empty: int = Field(description="Answers without a sentence.")
    truncated: int = Field(0, description="Answers that end at the longest length; judged like the others.")
    refused_units: int = Field(description="Sentences that refusal detection kept from the judges.")


class CellResult(BaseModel):
    """One cell: model × persona × task × dimension."""

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool
    scale: ScaleAnswer
    runs: int
    runs_used: int = Field(description="Runs with a scored sentence, of the judge who could use the fewest.")
    generation: ResponseStatuses
    metrics: CellMetrics
    units: UnitCounts
    scores: dict[str, int] = Field(
        {},
        description="How many sentences got each score.",
        examples=[{"1": 0, "2": 3, "3": 9, "4": 20, "5": 8}],
    )
    responses: dict[str, int]
    coverage: Coverage | None = Field(None, description="Missing in results from before.")
    corrected: Corrected | None = Field(None, description="Missing in results from before.")
    by_judge: dict[str, Any]


class TotalResult(GroupKeys):
    """Unweighted means over the cells of one group; the group's keys stand beside `by`."""

    by: list[str] = Field(description="Names of the keys that make the group.", examples=[["model", "task"]])
    cells: int
    simulated: bool
    generation: ResponseStatuses | None = Field(
        None,
        description="The responses of the cells; those that several cells share count once. Missing in results from before.",
    )
    metrics: CellMetrics
    matched: CellMetrics | None = Field(
        None,
        description="Of models: the same over the cells of which every model has the metric; `null` where no model lacks what another has.",
    )
    units: UnitCounts
    coverage: Coverage | None = Field(None, description="Missing in results from before.")
    corrected: Corrected | None = Field(None, description="Missing in results from before.")


class PersonaGenerationResult(Answer):
    """What came of a job that makes up personas."""

    id: str | None = Field(description="The set; `null` while there is none.")
    wanted: int
    found: int
    asks: int
    dropped: dict[str, int] = Field(description="`duplicate`, `alike`, `unusable`, `surplus`.")
    error: str | None = Field(description="What is missing, and why.")
    diversity: Diversity | None


class Results(BaseModel):
    """Every metric by cell and by total."""

    job: str
    name: str | None
    completeness: Completeness
    completeness_reasons: list[str] = Field(
        default_factory=list,
        description="Why it is `partial`, each `code: words`: `calls_missing`, `cells_without_figure`,"
        " `personas_without_score`. Missing in results from before.",
    )
    simulated: bool
    cells: list[CellResult]
    persona_scores: list[dict[str, Any]] = Field(
        description="PersonaScore and task scores of each persona and model, with what they leave out."
    )
    persona_score_totals: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Means and standard deviations over personas, by model; the model's refusal rate; `coverage` of the planned"
        " grades; in `corrected` PersonaScore's bounds; `matched` over the personas of which every model has a PersonaScore.",
    )
    judge_agreement: list[dict[str, Any]] = Field(
        default_factory=list, description="How well each two judges' grades agree, by task."
    )
    verdict_agreement: list[dict[str, Any]] = Field(
        default_factory=list,
        description="How well several judges' verdicts on the same sentences agree: over all of them, by task, by dimension.",
    )
    preparation: list[dict[str, Any]] = Field(
        default_factory=list,
        description="What the reasoner was asked, by kind and task, and what was dropped.",
    )
    persona_set: PersonaGenerationResult | None = Field(
        None, description="Of a job that makes up personas and does nothing else."
    )
    suspicion: SuspicionSummary | None = Field(
        None,
        description="Verdicts that a judged text may have swayed; `null` for a job in which nothing is judged.",
    )
    judging_check: JudgingCheck | None = Field(
        None,
        description="Of a job that judges several sentences a call: how far that agrees with one by one.",
    )
    human_agreement: list[HumanAgreement] = Field(
        default_factory=list,
        description="How far annotators agree with the judges; only where there are any.",
    )
    totals: list[TotalResult]
    judges: list[dict[str, Any]]
    correlations: list[Correlation] = Field(default_factory=list)
    length_effects: list[LengthEffect] = Field(default_factory=list)
    started_at: datetime | None
    computed_at: datetime
    failures: list[FailedCalls] = Field(
        default_factory=list, description="Failed calls, as a job shows them."
    )
    usage: JobUsage
    cost: Cost
    reuse: ReuseAnswer | None = Field(None, description="`null` for a job that does not ask for it.")
    manifest: dict[str, Any]
