"""Jobs and their plans as clients are shown them; how they are asked for is in :mod:`app.domain.jobs.request`."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from app.domain.contract import Answer, Completeness, Page
from app.domain.jobs.priority import Priority
from app.domain.jobs.status import JobStatus
from app.domain.providers.contract import SampledRole, SentParameters
from app.domain.providers.usage import Amount, Cost, FailedCalls, JobUsage, ReuseAnswer
from app.domain.results.model_scores import ModelScore
from app.domain.results.warnings import ResultWarning


class StageProgress(Answer):
    """One stage's progress; the parts add up to the total."""

    total: int
    pending: int
    running: int = Field(
        description="Parts that workers have taken. Only `on_the_wire` of the job's calls are sent; the others wait their turn."
    )
    succeeded: int
    failed: int
    estimated: bool = Field(description="Whether the total is still an estimate.")


def _is_missing(value: object) -> bool:
    return value is None


class JobError(Answer):
    """What stopped a job; unknown fields are omitted."""

    model_config = ConfigDict(extra="ignore")  # a later release may have stored more

    # In the order in which Postgres gives the keys of what is stored.
    code: str
    batch: int | None = Field(None, exclude_if=_is_missing, description="The batch concerned, if any.")
    cause: str | None = Field(None, exclude_if=_is_missing, description="What happened, in plain words.")
    model: str | None = Field(None, exclude_if=_is_missing, description="The model concerned.")
    shard: int | None = Field(
        None, exclude_if=_is_missing, description="For an internal error: the shard, as in the service's log."
    )
    stage: str | None = Field(None, exclude_if=_is_missing, description="The stage of the calls concerned.")
    detail: str = Field(description="The provider's message, or ours.")
    remedy: str | None = Field(
        None, exclude_if=_is_missing, description="What to change before the job can go on."
    )
    first_calls: int | None = Field(
        None,
        exclude_if=_is_missing,
        description="Number of calls of the stage, its first ones or later ones in a row, that all failed in the "
        "same way, if that stopped the job.",
    )


class ImportedFrom(Answer):
    """Where an imported job was computed."""

    job: str = Field(description="Its id there.")
    release: str = Field(description="The release of the service that wrote the bundle.")
    sha256: str = Field(description="Hash of the bundle.")
    imported_at: datetime


class Job(Answer):
    """A job."""

    id: str = Field(examples=["job_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["job"] = "job"
    name: str | None
    status: JobStatus
    status_reason: str | None = Field(description="Why it is paused, failed or cancelled.")
    completeness: Completeness
    simulated: bool = Field(description="Whether any model or judge is simulated.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    spec: dict[str, Any] = Field(description="The submitted body, without existing texts.")
    metadata: dict[str, str]
    tags: list[str] = Field(description="Like the name and the notes, they can be changed at any time.")
    notes: str | None
    archived_at: datetime | None = Field(
        description="When it was archived. Archived jobs are only listed on request."
    )
    models: list[str] = Field(description="Labels of the models under test.")
    imported_judges: list[str] = Field(
        description="Names of judges whose verdicts came with the responses; empty if all judges are called."
    )
    scores: list[ModelScore] = Field(
        description="The models' main scores, best first, once the job has ended."
    )
    warnings: list[ResultWarning] = Field(
        description="Reasons to doubt its results, the gravest first, once the job has ended."
    )
    priority: Priority
    error: JobError | None = Field(description="What stopped it.")
    imported_from: ImportedFrom | None = Field(
        description="Of a job that was not computed here, but imported from a bundle."
    )
    links: dict[str, str] = Field(
        description="Related URLs; `question_set` and `persona_set` once the job has created one, `source` the job whose texts it judges."
    )


class UsdBudget(Answer):
    """A budget in US dollars."""

    limit: float
    spent: float = Field(description="Cost of recorded calls; the worst case if a call's cost is unknown.")
    reserved: float = Field(description="The worst case of calls in flight, and of those lost with a worker.")
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
    exceeded_calls: int = Field(
        0,
        exclude_if=lambda calls: calls == 0,
        description="Calls that were billed beyond their worst case, if any. Their model takes one call at a time.",
    )


class BatchProgress(Answer):
    """A job's batches."""

    open: int = Field(description="Batches that have not ended.")
    ended: int
    calls_in_open: int
    calls_waiting: int = Field(description="Calls not yet in a batch.")
    cut_for_budget: int = Field(
        description="Batches that took fewer calls than were waiting, because the budget or the key's cap did "
        "not cover the worst case of more."
    )
    waiting_for: str | None = Field(description="Which batches the job waits for, in words.")


class HeldModel(Answer):
    """A model that the rate limiter has on hold."""

    model: str
    until: datetime
    reason: str | None = Field(description="For example, a daily limit used up; `null` if unknown.")


class Retrying(Answer):
    """Calls that have all failed so far and are being retried."""

    stage: str
    model: str
    attempts: int
    cause: str = Field(description="Why, in plain words.")
    remedy: str = Field(description="What to do about it.")


class FailedAsks(Answer):
    """Unusable replies of the reasoner in steps of its preparation that are not ready."""

    stage: str
    task: str | None = Field(description="`null` for environments and personas.")
    model: str | None = Field(description="The reasoner; `null` before its first call is recorded.")
    asks: int = Field(description="Unusable replies so far.")
    steps: int = Field(description="Steps that they concern; each is asked for several times.")
    given_up: int = Field(description="Steps that failed.")
    reason: str = Field(description="What the last reply lacks.")
    reply: str = Field(description="The first 160 characters of the last reply. Untrusted text.")


class JobDetail(Job):
    """A job with its progress and usage."""

    progress: dict[str, StageProgress]
    on_the_wire: int | None = Field(
        description="Calls sent and not yet answered, as workers last reported, at most five seconds ago by default. "
        "`null` if a worker that has just begun has not reported yet."
    )
    usage: JobUsage
    cost: Cost
    failures: list[FailedCalls] = Field(
        description="Failed calls by stage, model, code and message, the most frequent first; at most 50."
    )
    retrying: list[Retrying] = Field(
        description="Models of a running job that have not yet answered any call of a stage; their calls are "
        "being retried."
    )
    failed_asks: list[FailedAsks] = Field(
        description="Unusable replies of the reasoner, by stage and task, while PersonaGym's preparation or "
        "the generation of personas lacks something."
    )
    held: list[HeldModel] = Field(
        description="Models that a running job waits for because a provider's limit is used up for several "
        "seconds or longer."
    )
    budget: BudgetAnswer | None = Field(description="`null` for a job without a budget.")
    reuse: ReuseAnswer | None = Field(description="`null` for a job without it.")
    batches: BatchProgress | None = Field(description="`null` for a job without batches.")


class ListedJob(Job):
    """A job of a list."""

    cost: Cost


class JobList(Page[ListedJob]):
    """A page of jobs."""


class PlanStage(Answer):
    """A stage's expected calls and cost on one model."""

    stage: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    usd: Amount | None
    price_source: str | None


class PlanCost(Answer):
    """The expected cost in US dollars."""

    usd_low: Amount | None = Field(description="`null` if no price is known.")
    usd_high: Amount | None = Field(
        description="With long texts, a repair of every judge's reply and a refusal check of every text."
    )
    unpriced_models: list[str]


class InRole(Answer):
    """What is told of a model in one role."""

    role: SampledRole
    model: str


class PlanParameters(SentParameters, InRole):
    """Which of a model's parameters are sent in one role."""


class JobSize(Answer):
    """A job size and its power."""

    personas: int
    wordings: int = Field(description="Persona instructions.")
    iterations: int
    power: float | None = Field(description="Share of such jobs that detect the difference.")
    reason: str | None = Field(description="Why no difference can be detected.")
    calls: int = Field(description="Calls to all of the job's models and judges.")
    usd: Amount | None = Field(
        description="Expected cost, without the plan's `unpriced_models`; `null` if no price is known."
    )


class NoiseOfDifferences(Answer):
    """A standard deviation of two models' differences."""

    of: Literal["personas", "levels", "wordings", "personas_and_wordings", "runs"] = Field(
        description="What they vary with. `personas`: on one level; `levels` matter only under these wordings;"
        " `runs`: 0 where they are part of `personas_and_wordings`."
    )
    sd: float
    source: str = Field(
        description="`from_job`; `published`: the atomic paper's 540 cells, all pairs of its models; "
        "`assumed`: no data."
    )


class Detection(Answer):
    """The job size that detects a difference of two models."""

    metric: str
    difference: float
    power: float
    models: int = Field(
        description="Number of models compared at once: the chance of any false alarm is 5 %."
    )
    population: str = Field(examples=["personas like these, wordings like these"])
    planned: JobSize = Field(description="The job as described.")
    options: list[JobSize] = Field(
        description="Sizes with the fewest personas for each number of wordings and iterations, cheapest "
        "first; assumes personas like the job's."
    )
    reason: str | None = Field(description="Why there are no options.")
    noise: list[NoiseOfDifferences]


class PlanControl(Answer):
    """What the control arm adds to a job; included in the plan's other figures."""

    responses: int
    calls: int
    cost: PlanCost


class Plan(Answer):
    """A job's estimated calls and cost."""

    object: Literal["plan"] = "plan"
    cells: int = Field(description="Cells of the results: model × persona × task × trait.")
    persona_scores: int = Field(description="PersonaScores of the results: persona × model.")
    runs_per_cell: int | None = Field(description="Of the atomic tasks.")
    responses: int
    calls: int
    most_repair_calls: int = Field(
        0,
        description="Further calls if no judge's first reply can be read. `confirm_calls` and `usd_high` include them.",
    )
    most_refusal_checks: int = Field(
        0,
        description="Further calls if the refusal rules are unsure of every text. `confirm_calls` and `usd_high` include them. "
        "0 with `judging.refusals: judge_all`, whose checks `calls` includes.",
    )
    confirm_calls: int | None = Field(
        description="The `confirm_calls` that a job of this size requires; `null` if none."
    )
    estimated: bool = Field(
        description="Whether the number of judging calls is an estimate; it is exact for existing texts."
    )
    stages: list[PlanStage]
    cost: PlanCost
    control: PlanControl | None = Field(None, description="`null` for a job without `control`.")
    shortest_seconds: float = Field(description="Under the configured rate limits.")
    simulated: bool
    model_table: str | None = Field(
        description="Version of the table of model families and the parameters they take."
    )
    parameters: list[PlanParameters]
    warnings: list[str]
    detection: Detection | None = Field(None, description="If `detect` requests it.")
