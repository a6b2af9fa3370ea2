"""Schedules as clients ask for them and are shown them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from app.domain.contract import Answer, Body, ChangeBody, Identifier, Line, Page, Text
from app.domain.watching.attribution import Cause
from app.domain.watching.cron import check_cron, check_zone
from app.domain.watching.figure import figure_of

Cron = Annotated[Text, Field(max_length=100), AfterValidator(check_cron)]
Zone = Annotated[Text, Field(max_length=100), AfterValidator(check_zone)]
Usd = Annotated[float, Field(ge=1e-6, le=1e9, allow_inf_nan=False)]

RunState = Literal["due", "running", "measured", "failed", "skipped", "missed"]
PausedReason = Literal["by_user", "budget_used_up", "key_ended"]

SCHEDULE_EXAMPLE: JsonDict = {
    "name": "nightly",
    "cron": "30 2 * * *",
    "time_zone": "Europe/Berlin",
    "job": {
        "personas": ["big-five"],
        "tasks": ["questionnaire"],
        "models": ["openai/gpt-6-luna"],
        "judges": ["anthropic/claude-sonnet-5-5"],
        "iterations": 1,
    },
    "anchors": {"job": "job_01kxyz0abcdefghjkmnpqrstvw", "sample": {"responses": 200}},
    "budget": {"run_usd": 5, "total_usd": 500},
}


def _figure(text: str) -> str:
    figure_of(text)
    return text


FigureText = Annotated[Text, Field(max_length=300), AfterValidator(_figure)]


class AnchorSampleIn(Body):
    """How many of the job's responses are anchors."""

    responses: int = Field(200, ge=10, le=10_000, description="Number of responses.")
    seed: int = Field(0, ge=0, le=2**63 - 1, description="Random seed of the draw.")


class AnchorsIn(Body):
    """Existing responses that each run judges again: their figure moves only if the judge does."""

    job: Identifier = Field(description="The job whose responses they are.")
    sample: AnchorSampleIn = Field(
        default_factory=AnchorSampleIn, description="The sample, the same in each run."
    )


class ScheduleBudgetIn(Body):
    """Limits on what a schedule spends. Unset limits are none."""

    run_usd: Usd | None = Field(None, description="US dollars for one run, anchors included.")
    total_usd: Usd | None = Field(
        None, description="US dollars for all runs together; once used up, the schedule is paused."
    )

    @model_validator(mode="after")
    def _limits_something(self) -> "ScheduleBudgetIn":
        if self.run_usd is None and self.total_usd is None:
            raise ValueError("give at least one of run_usd, total_usd")
        return self


class ScheduleIn(Body):
    """A job that is run again and again."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [SCHEDULE_EXAMPLE]})

    name: Line | None = Field(None, description="A name, for people.")
    cron: Cron = Field(
        description="When it is due: minute, hour, day of month, month, day of week; at most every 15 minutes.",
        examples=["30 2 * * *"],
    )
    time_zone: Zone = Field(
        "UTC",
        description="IANA time zone of `cron`. A time that a change of the clock leaves out is due when the clock"
        " has moved on; one that comes twice is due once.",
        examples=["Europe/Berlin"],
    )
    job: dict[str, Any] | None = Field(
        None, description="The job, as for `POST /v1/jobs`, without texts of its own."
    )
    clone: Identifier | None = Field(None, description="Instead of `job`: an existing job to run again.")
    figure: FigureText | None = Field(
        None,
        description="The watched value, as in a threshold: `acc_atom`, `mean@task=essay,level=low`,"
        " `persona_score`. With several models it needs `model=LABEL`. Default: `acc_atom`, or"
        " `persona_score` for a job with only PersonaGym tasks.",
    )
    anchors: AnchorsIn | None = Field(
        None, description="Tell drift of the judge from drift of the model; without them, it is not known."
    )
    budget: ScheduleBudgetIn | None = None
    paused: bool = Field(False, description="A paused schedule is not due.")

    @model_validator(mode="after")
    def _one_job(self) -> "ScheduleIn":
        if (self.job is None) == (self.clone is None):
            raise ValueError("give either job or clone")
        return self


class ScheduleChangeIn(ChangeBody):
    """Changes to a schedule; omitted fields stay as they are. Another job or figure is another schedule."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"paused": True}]})

    name: Line | None = None
    cron: Cron = Field("", validate_default=False)
    time_zone: Zone = Field("", validate_default=False)
    budget: ScheduleBudgetIn | None = Field(None, description="All limits; `null` removes them.")
    paused: bool = Field(False, description="What was due while it was paused is not run later.")


class Alarm(Answer):
    """A change of the watched value that is more than chance."""

    cause: Cause = Field(
        description="`model`: beyond what the anchors moved. `judge`: the anchors moved. `model_or_judge`:"
        " the schedule has no anchors; or, beside `judge`, the value moved otherwise than anchors of fewer than four"
        " personas, which hardly tell how differently the judge moves."
    )
    since: datetime = Field(description="When the first run after the change was due.")
    before: float = Field(
        description="Mean before it: for `judge` of the anchors, otherwise of the value, minus the anchors' if there are any."
    )
    after: float = Field(description="Mean since then.")
    runs_before: int | None = Field(
        None, description="Number of runs, since the last change, that `before` is a mean of."
    )
    runs_after: int | None = Field(None, description="Number of runs that `after` is a mean of.")
    shift: float
    ci95: tuple[float, float] = Field(description="95 % interval of the shift.")


class ScheduleRun(Answer):
    """A due time of a schedule and what became of it."""

    id: str = Field(examples=["srun_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["schedule_run"] = "schedule_run"
    schedule: str
    due: datetime
    state: RunState = Field(
        description="`missed`: the service was down, or an internal error put the schedule off. `skipped`: the previous run had not ended, or the budget"
        " is used up. `failed`: the job was refused, or has no value."
    )
    reason: str | None = Field(description="Why there is no value.")
    missed: int = Field(description="For `missed`: the number of due times up to this one that were missed.")
    job: str | None
    anchor_job: str | None
    value: float | None = Field(description="The watched value. Kept when the job is deleted.")
    n: int | None = Field(
        None,
        description="Number of cells that the value is a mean of; of a PersonaScore, personas. `null` without"
        " a value.",
    )
    left_out: int | None = Field(None, description="Number of cells or personas without the value.")
    coverage: float | None = Field(
        None,
        description="Share of the planned verdicts, grades or cells (whichever is smaller) behind the value.",
    )
    limits: tuple[float, float] | None = Field(
        description="If three runs in a row lie beyond the same limit, there is an alarm; two do if far beyond."
        " `null` for the first runs."
    )
    anchor_value: float | None
    anchor_n: int | None = Field(None, description="As `n`, of the anchors.")
    anchor_left_out: int | None = None
    anchor_coverage: float | None = None
    anchor_limits: tuple[float, float] | None
    alarms: list[Alarm]
    usd: float | None = Field(description="What it cost, as far as known.")
    ended_at: datetime | None


class ScheduleRunList(Page[ScheduleRun]):
    """A page of runs, newest first."""


class ScheduleBudget(Answer):
    """A schedule's limits and what its runs have spent."""

    run_usd: float | None
    total_usd: float | None
    spent_usd: float


class Schedule(Answer):
    """A schedule."""

    id: str = Field(examples=["sched_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["schedule"] = "schedule"
    name: str | None
    cron: str
    time_zone: str
    job: dict[str, Any] = Field(description="The body of each run's job.")
    figure: str
    anchors: AnchorsIn | None
    budget: ScheduleBudget
    paused: bool
    paused_reason: PausedReason | None
    next_due: datetime | None
    last_run: ScheduleRun | None
    simulated: bool = Field(description="Whether a model or judge of one of its runs was simulated.")
    created_at: datetime
    updated_at: datetime


class ScheduleList(Page[Schedule]):
    """A page of schedules, newest first."""
