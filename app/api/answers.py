"""Schemas of answers, for the OpenAPI document. The services make these shapes; tests hold the two together."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from app.api.annotation_answers import HumanAgreement
from app.api.answer import Answer
from app.api.metric_answers import Correlation, GroupKeys, LengthEffect, Metric
from app.api.reuse_answers import Origin, ReuseAnswer
from app.api.suspicion_answers import SuspicionAnswer, SuspicionSummary
from app.domain.priority import Priority
from app.domain.status import JobStatus

Completeness = Literal["full", "partial"]


class StageProgress(Answer):
    """How far one stage is; the parts add up to the total."""

    total: int
    pending: int
    running: int
    succeeded: int
    failed: int
    estimated: bool = Field(description="Whether the total is still an estimate.")


class Tokens(Answer):
    """Calls and tokens; every attempt that was sent counts as a call."""

    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int


class ModelUsage(Tokens):
    """Calls and tokens of one stage on one model."""

    stage: str
    model: str
    usd: float | None = Field(description="`null` where no price is known.")
    unpriced_calls: int


class JobUsage(Tokens):
    """Calls and tokens of a job."""

    by_model: list[ModelUsage]


class Cost(Answer):
    """US dollars spent."""

    usd: float | None = Field(description="`null` where no price is known.")
    unpriced_calls: int = Field(
        description="Calls that cost, or may have cost, something unknown and are not in the sum."
    )


class Job(Answer):
    """A job."""

    id: str = Field(examples=["job_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["job"]
    name: str | None
    status: JobStatus
    status_reason: str | None = Field(description="Why it is paused, failed or cancelled.")
    completeness: Completeness
    simulated: bool = Field(description="Whether a simulated model or judge takes part.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    spec: dict[str, Any] = Field(description="The body of the POST, existing texts left out.")
    metadata: dict[str, str]
    priority: Priority
    error: dict[str, Any] | None
    links: dict[str, str] = Field(
        description="Where to read on; `question_set` and `persona_set` once the job has made one."
    )


class UsdBudget(Answer):
    """A budget in US dollars."""

    limit: float
    spent: float = Field(description="Of recorded calls; the worst case of those whose cost is unknown.")
    reserved: float = Field(
        description="The worst case of calls on their way, and of those that a worker was at when it died."
    )
    remaining: float


class CountBudget(Answer):
    """A budget in calls or tokens; its parts as in US dollars."""

    limit: int
    spent: int
    reserved: int
    remaining: int


class BudgetAnswer(Answer):
    """The limits that a job has."""

    usd: UsdBudget | None = None
    calls: CountBudget | None = None
    tokens: CountBudget | None = None


class BatchProgress(Answer):
    """A job's batches."""

    open: int = Field(description="Those that have not ended.")
    ended: int
    calls_in_open: int
    calls_waiting: int = Field(description="Calls that are in no batch yet.")


class JobDetail(Job):
    """A job with its progress and what it has taken."""

    progress: dict[str, StageProgress]
    usage: JobUsage
    cost: Cost
    budget: BudgetAnswer | None = Field(description="`null` for a job without a budget.")
    reuse: ReuseAnswer | None = Field(description="`null` for a job that does not ask for it.")
    batches: BatchProgress | None = Field(description="`null` for a job whose calls are direct.")


class JobList(Answer):
    """A page of jobs, newest first."""

    data: list[Job]
    has_more: bool
    next_cursor: str | None


class PlanStage(Answer):
    """What a stage is expected to take on one model."""

    stage: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    price_source: str | None


class PlanCost(Answer):
    """The expected cost in US dollars."""

    usd_low: float | None = Field(description="`null` where no price is known.")
    usd_high: float | None
    unpriced_models: list[str]


class Plan(Answer):
    """What a job would take."""

    object: Literal["plan"]
    cells: int = Field(description="Cells of the results: model × persona × task × trait.")
    persona_scores: int = Field(description="PersonaScores of the results: persona × model.")
    runs_per_cell: int | None = Field(description="Of the atomic tasks.")
    responses: int
    calls: int
    estimated: bool = Field(description="Whether judging is estimated; it is exact for existing texts.")
    stages: list[PlanStage]
    cost: PlanCost
    shortest_seconds: float = Field(description="Under the configured rate limits.")
    simulated: bool
    warnings: list[str]


class UnitCounts(Answer):
    """Judged sentences by what became of the judgement."""

    total: int
    scored: int
    not_applicable: int
    refused: int
    unparsed: int
    failed: int


class ScaleAnswer(Answer):
    """Integer scores from `minimum` to `maximum`, cut into equal levels."""

    minimum: int
    maximum: int
    levels: list[str] = Field(description="Lowest first.", examples=[["low", "neutral", "high"]])


class ResponseStatuses(Answer):
    """A cell's responses by what became of them before judging."""

    planned: int
    answered: int = Field(description="Texts that are not refusals, empty ones included.")
    refused: int
    failed: int
    empty: int = Field(description="Answers without a sentence.")
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
    metrics: dict[str, Metric]
    units: UnitCounts
    scores: dict[str, int] = Field(
        {},
        description="How many sentences got each score.",
        examples=[{"1": 0, "2": 3, "3": 9, "4": 20, "5": 8}],
    )
    responses: dict[str, int]
    by_judge: dict[str, Any]


class TotalResult(GroupKeys):
    """Unweighted means over the cells of one group; the group's keys stand beside `by`."""

    by: list[str] = Field(description="Names of the keys that make the group.", examples=[["model", "task"]])
    cells: int
    simulated: bool
    metrics: dict[str, Metric]
    units: UnitCounts


class DiversityAnswer(Answer):
    """How alike generated personas are: Jaccard similarities, 0 to 1, over all pairs of them."""

    pairs: int
    highest_attributes: float = Field(description="Of two descriptions' content words.")
    mean_attributes: float
    highest_wording: float = Field(description="Of two descriptions' sequences of three characters.")
    mean_wording: float


class PersonaGenerationResult(Answer):
    """What came of a job that makes up personas."""

    id: str | None = Field(description="The set; `null` while there is none.")
    wanted: int
    found: int
    asks: int
    dropped: dict[str, int] = Field(description="`duplicate`, `alike`, `unusable`, `surplus`.")
    error: str | None = Field(description="What is missing, and why.")
    diversity: DiversityAnswer | None


class JudgingAgreement(Answer):
    """How far one judge's verdicts agree, over all tasks (`task` is `null`) or in one; each n counts sentences."""

    judge: str
    task: str | None
    scale: dict[str, int] = Field(
        description="`minimum` and `maximum`; dimensions with another have a row of their own."
    )
    sentences: int = Field(description="Judged both ways.")
    responses: int
    left_out: int = Field(description="Without a readable verdict alone; in none of the figures.")
    exact_agreement: Metric
    mean_absolute_difference: Metric
    mean_difference: Metric = Field(description="Grouped minus alone, in points of the scale.")
    quadratic_kappa: Metric
    acc_grouped: Metric = Field(description="Share of the sentences scored in a group that are in character.")
    acc_alone: Metric
    acc_difference: Metric


class JudgingCheck(Answer):
    """A sample's verdicts on several sentences a call beside those on one. Its verdicts alone are in no other figure."""

    sentences_per_call: int
    sample: dict[str, float] = Field(
        description="`share` and `minimum` as asked for, the `responses` drawn, and how many they were `drawn_from`."
    )
    responses: int = Field(description="With sentences judged both ways; refusals have none.")
    sentences: int
    asked_alone: dict[str, int] = Field(
        description="Sentences whose part of a reply about several could not be used, by what became of it."
    )
    agreement: list[JudgingAgreement]


class Results(BaseModel):
    """Every metric by cell and by total."""

    job: str
    name: str | None
    completeness: Completeness
    simulated: bool
    cells: list[CellResult]
    persona_scores: list[dict[str, Any]] = Field(
        description="PersonaScore and task scores of each persona and model, with what they leave out."
    )
    persona_score_totals: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Means and standard deviations over personas, by model; the model's refusal rate.",
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
    usage: JobUsage
    cost: Cost
    reuse: ReuseAnswer | None = Field(None, description="`null` for a job that does not ask for it.")
    manifest: dict[str, Any]


class VerdictAnswer(Answer):
    """One judge's verdict on one sentence."""

    judge: str
    dimension: str
    status: Literal["scored", "not_applicable", "refused", "unparsed", "failed"]
    score: int | None
    raw: str | None
    in_character: bool | None
    group_size: int = Field(
        description="Sentences that the judge was asked about in the same call; 1 where alone."
    )
    reused: Origin | None = Field(description="Which job's reply it is, if no call was made for it.")
    suspicion: SuspicionAnswer


class UnitAnswer(Answer):
    """One sentence."""

    index: int
    span: tuple[int, int] = Field(description="Offsets in the response's text, in Unicode code points.")
    text: str = Field(description="The sentence as the judge read it.")
    verdicts: list[VerdictAnswer]


class GradeAnswer(Answer):
    """One judge's grade of a whole response, by its question's rubric."""

    judge: str
    status: Literal["scored", "refused", "unparsed", "failed"]
    score: int | None
    justification: str | None
    raw: str | None
    error: str | None = Field(description="Why there is no reply.")
    reused: Origin | None = Field(description="Which job's reply it is, if no call was made for it.")
    suspicion: SuspicionAnswer


class ItemAnswer(Answer):
    """What was asked."""

    id: str
    text: str


class ResponseUsage(Answer):
    """Tokens of one response."""

    input_tokens: int
    output_tokens: int


class ResponseAnswer(Answer):
    """A response with its sentences and their verdicts."""

    id: str
    model: str
    persona: str
    levels: dict[str, str]
    task: str
    item: ItemAnswer
    run: int
    instruction: int | None
    iteration: int | None
    status: Literal["answered", "refused", "failed"]
    text: str | None
    refusal: bool
    error: str | None
    finish_reason: str | None
    usage: ResponseUsage | None
    units: list[UnitAnswer]
    question: str | None = Field(description="What a PersonaGym task asked; `null` for other tasks.")
    grades: list[GradeAnswer] = Field(description="Grades of a PersonaGym response, one for each judge.")
    score: float | None = Field(description="The mean over the judges that gave a score.")
    reused: Origin | None = Field(description="Which job's text it is, if no call was made for it.")


class ResponseList(Answer):
    """A page of responses."""

    data: list[ResponseAnswer]
    has_more: bool
    next_cursor: str | None


class Trait(Answer):
    """A persona's stand on one dimension."""

    dimension: str
    level: str


class PersonaAnswer(Answer):
    """A built-in persona."""

    id: str
    description: str
    traits: list[Trait]
    sets: list[str]


class PersonaList(Answer):
    """All built-in personas and sets."""

    data: list[PersonaAnswer]
    sets: dict[str, list[str]]
    instructions: list[str]


class DimensionAnswer(Answer):
    """A built-in dimension."""

    id: str
    name: str
    minimum: int
    maximum: int
    levels: list[str]
    options: str
    questions: list[str]
    essay_context: str | None


class TaskAnswer(Answer):
    """A task."""

    id: str
    title: str
    framework: Literal["atomic", "personagym"]
    prompt: str | None = Field(description="`null` where each persona is asked questions of its own.")
    scoring_prompt: str
    expected_units: float


class TaskList(Answer):
    """All tasks and the dimensions that they measure."""

    data: list[TaskAnswer]
    dimensions: list[DimensionAnswer]
    instrument: dict[str, str]


class ConnectionAnswer(Answer):
    """A configured connection; its key is never shown."""

    id: str
    kind: str
    simulated: bool
    models: list[str] | None = Field(description="Models that jobs may use; `null` for all.")
    requests_per_minute: float | None
    tokens_per_minute: float | None
    max_in_flight: int | None


class ConnectionList(Answer):
    """All configured connections."""

    data: list[ConnectionAnswer]


class Health(Answer):
    """Whether the service can do its work."""

    status: Literal["ok", "unavailable"]
    parts: dict[str, str] = Field(default_factory=dict)
