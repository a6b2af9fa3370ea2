"""Jobs and their plans as clients are shown them; how they are asked for is in :mod:`app.domain.jobs.request`."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from app.domain.contract import Answer, Completeness, Page
from app.domain.jobs.priority import Priority
from app.domain.jobs.status import JobStatus
from app.domain.providers.contract import SampledRole, SentParameters
from app.domain.providers.usage import Amount, Cost, FailedCalls, JobUsage, ReuseAnswer


class StageProgress(Answer):
    """How far one stage is; the parts add up to the total."""

    total: int
    pending: int
    running: int
    succeeded: int
    failed: int
    estimated: bool = Field(description="Whether the total is still an estimate.")


def _is_missing(value: object) -> bool:
    return value is None


class JobError(Answer):
    """What stopped a job; what is not known, or says nothing of it, is left out."""

    model_config = ConfigDict(extra="ignore")  # what earlier releases may have kept

    # In the order in which Postgres gives the keys of what is stored.
    code: str
    batch: int | None = Field(None, exclude_if=_is_missing, description="Where it is about a batch.")
    cause: str | None = Field(None, exclude_if=_is_missing, description="What happened, in plain words.")
    model: str | None = Field(None, exclude_if=_is_missing, description="Whose calls it is about.")
    shard: int | None = Field(
        None, exclude_if=_is_missing, description="Of an error of the service, for its log."
    )
    stage: str | None = Field(None, exclude_if=_is_missing, description="Of the calls that it is about.")
    detail: str = Field(description="The provider's words, or ours.")
    remedy: str | None = Field(
        None, exclude_if=_is_missing, description="What to change before the job can go on."
    )
    first_calls: int | None = Field(
        None,
        exclude_if=_is_missing,
        description="So many first calls of the stage all failed alike, where that stopped it.",
    )


class Job(Answer):
    """A job."""

    id: str = Field(examples=["job_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["job"] = "job"
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
    error: JobError | None = Field(description="What stopped it.")
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

    usd: UsdBudget | None = Field(None, exclude_if=_is_missing)
    calls: CountBudget | None = Field(None, exclude_if=_is_missing)
    tokens: CountBudget | None = Field(None, exclude_if=_is_missing)


class BatchProgress(Answer):
    """A job's batches."""

    open: int = Field(description="Those that have not ended.")
    ended: int
    calls_in_open: int
    calls_waiting: int = Field(description="Calls that are in no batch yet.")
    cut_for_budget: int = Field(
        description="Batches with fewer calls than waited, because the budget, or the key's cap, did not cover more at their worst."
    )


class HeldModel(Answer):
    """A model that the rate limiter lets nobody call for a while."""

    model: str
    until: datetime
    reason: str | None = Field(
        description="Such as a day's limit that is used up; `null` where it is not known."
    )


class Retrying(Answer):
    """Calls that have all failed so far and are tried again."""

    stage: str
    model: str
    attempts: int
    cause: str = Field(description="Why, in plain words.")
    remedy: str = Field(description="What to do about it.")


class JobDetail(Job):
    """A job with its progress and what it has taken."""

    progress: dict[str, StageProgress]
    usage: JobUsage
    cost: Cost
    failures: list[FailedCalls] = Field(
        description="Failed calls by stage, model, code and words, the most frequent first; at most 50."
    )
    retrying: list[Retrying] = Field(
        description="Models of a job at work that have not answered any call of a stage; their calls are tried again."
    )
    held: list[HeldModel] = Field(
        description="Models that a job at work waits for, because a provider's limit is used up for some seconds or longer."
    )
    budget: BudgetAnswer | None = Field(description="`null` for a job without a budget.")
    reuse: ReuseAnswer | None = Field(description="`null` for a job that does not ask for it.")
    batches: BatchProgress | None = Field(description="`null` for a job whose calls are direct.")


class JobList(Page[Job]):
    """A page of jobs, newest first."""


class PlanStage(Answer):
    """What a stage is expected to take on one model."""

    stage: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: Amount | None
    price_source: str | None


class PlanCost(Answer):
    """The expected cost in US dollars."""

    usd_low: Amount | None = Field(description="`null` where no price is known.")
    usd_high: Amount | None
    unpriced_models: list[str]


class InRole(Answer):
    """What is told of a model in one role."""

    role: SampledRole
    model: str


class PlanParameters(SentParameters, InRole):
    """What of a model's parameters is sent in one role."""


class JobSize(Answer):
    """How large a job is, and what it would find."""

    personas: int
    wordings: int = Field(description="Persona instructions.")
    iterations: int
    power: float | None = Field(description="Share of such jobs whose comparison finds the difference.")
    reason: str | None = Field(description="Why they find none, however great.")
    calls: int = Field(description="Of all the job's models and judges.")
    usd: Amount | None = Field(
        description="Expected cost, without the plan's `unpriced_models`; `null` where no price is known."
    )


class NoiseOfDifferences(Answer):
    """A standard deviation of two models' differences."""

    of: Literal["personas", "levels", "wordings", "personas_and_wordings", "runs"] = Field(
        description="What they vary with. `personas`: on one level; `levels` matter only under these wordings;"
        " `runs`: 0 where they are part of `personas_and_wordings`."
    )
    sd: float
    source: str = Field(
        description="`from_job`; `published`: the atomic paper's 540 cells, all pairs of its models; `assumed`: nothing tells it."
    )


class Detection(Answer):
    """How large a job finds a difference of two models."""

    metric: str
    difference: float
    power: float
    models: int = Field(description="Compared with each other at once: the chance of any false alarm is 5 %.")
    population: str = Field(examples=["personas like these, wordings like these"])
    planned: JobSize = Field(description="The job as it is described.")
    options: list[JobSize] = Field(
        description="With the fewest personas for so many wordings and iterations, cheapest first; personas like the job's on average."
    )
    reason: str | None = Field(description="Why there are no options.")
    noise: list[NoiseOfDifferences]


class PlanControl(Answer):
    """What the control arm adds to a job; the plan's other figures include it."""

    responses: int
    calls: int
    cost: PlanCost


class Plan(Answer):
    """What a job would take."""

    object: Literal["plan"] = "plan"
    cells: int = Field(description="Cells of the results: model × persona × task × trait.")
    persona_scores: int = Field(description="PersonaScores of the results: persona × model.")
    runs_per_cell: int | None = Field(description="Of the atomic tasks.")
    responses: int
    calls: int
    confirm_calls: int | None = Field(
        description="What the job has to give as `confirm_calls` because of its size; `null` where it needs nothing."
    )
    estimated: bool = Field(description="Whether judging is estimated; it is exact for existing texts.")
    stages: list[PlanStage]
    cost: PlanCost
    control: PlanControl | None = Field(None, description="`null` for a job without `control`.")
    shortest_seconds: float = Field(description="Under the configured rate limits.")
    simulated: bool
    model_table: str | None = Field(
        description="Version of the data by which parameters are sent or left out: what each family of models takes."
    )
    parameters: list[PlanParameters]
    warnings: list[str]
    detection: Detection | None = Field(None, description="Where `detect` asks for it.")
