"""Shows a job: status, progress, usage, cost."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.batches import batches
from app.db.engine import single_statements
from app.db.execution import response_cache
from app.db.execution.failures import FailureRow
from app.db.execution.response_cache import ReuseRow
from app.db.jobs import budgets, jobs
from app.db.jobs.budgets import Account
from app.db.jobs.jobs import JobRow
from app.db.jobs.preparations import FailedAsksRow, StepCounts
from app.db.jobs.progress import Counts, UsageRow
from app.domain.jobs.budget import NANOS, NO_LIMITS, UNITS
from app.domain.jobs.contract import (
    BatchProgress,
    BudgetAnswer,
    FailedAsks,
    HeldModel,
    Job,
    JobDetail,
    Retrying,
    StageProgress,
)
from app.domain.jobs.execution import Execution
from app.domain.jobs.status import ENDING, JobStatus
from app.domain.jobs.verdicts_request import imported_judges
from app.domain.personagym.replies import beginning
from app.domain.providers.failure import cause, may_pass
from app.domain.providers.model import Stage
from app.domain.providers.reuse import ReuseScope
from app.domain.providers.usage import (
    Cost,
    FailedCalls,
    JobUsage,
    ReuseAnswer,
    SparedByModel,
    Tokens,
)
from app.domain.sets.kinds import KINDS
from app.limits.holds import Hold
from app.services.errors import NotFoundError
from app.services.jobs.progress import RecentProgress, read_progress
from app.services.sets.sets import made_set_id

Holds = Callable[[Sequence[str]], Awaitable[Mapping[str, Hold]]]
"""Looks up which of some models, each as ``connection/model``, nobody may call for a while."""


async def find_job(engine: AsyncEngine, tenant: str, job_id: str) -> JobRow:
    """A tenant's job.

    Raises:
        NotFoundError: If there is none of that id.
    """
    job = await jobs.find_job(engine, tenant, job_id)
    if job is None:
        raise NotFoundError(f"job {job_id} not found")
    return job


async def view_job(
    engine: AsyncEngine,
    tenant: str,
    job_id: str,
    recent: RecentProgress | None = None,
    holds: Holds | None = None,
) -> JobDetail:
    """A job with its live progress.

    Args:
        engine: Where to look.
        tenant: Whose job it is.
        job_id: Which job.
        recent: Where progress, usage and cost are known that are good enough; without it they are those of now.
        holds: Looks up which models are held; without it none is shown.

    Raises:
        NotFoundError: If there is none of that id.
    """
    job = await find_job(engine, tenant, job_id)
    found = await (read_progress(engine, job) if recent is None else recent.read(job))
    answering = {} if Stage.PERSONAS in found.steps else _progress(job, found.total, found.leased)
    budget, reuse, batched = await _what_few_have(engine, job)
    return JobDetail(
        **shown(job),
        progress=_preparation(job, found.steps) | answering,
        on_the_wire=None if found.leased.unreported else found.leased.on_the_wire,
        usage=usage_of(found.usage),
        cost=cost_of(found.usage),
        failures=failures_of(found.failures.rows),
        retrying=retrying_of(job.status, found.usage, found.failures.rows),
        failed_asks=[_failed_asks(row, found.usage) for row in found.failed_asks],
        held=[] if holds is None else await _held(job, found.usage, holds),
        budget=budget,
        reuse=reuse,
        batches=batched,
    )


async def _held(job: JobRow, usage: Sequence[UsageRow], holds: Holds) -> list[HeldModel]:
    """The models of a job at work that nobody may call for a while, with the reason."""
    if not job.status.may_call:
        return []
    asked = [*job.request.get("models", ()), *job.request.get("judges", ()), job.request.get("reasoner")]
    named = [one.get("model") if isinstance(one, dict) else one for one in asked]
    models = sorted({row.model for row in usage}.union(name for name in named if isinstance(name, str)))
    return [
        HeldModel(model=model, until=hold.until, reason=hold.reason or None)
        for model, hold in (await holds(models)).items()
    ]


async def _what_few_have(
    engine: AsyncEngine, job: JobRow
) -> tuple[BudgetAnswer | None, ReuseAnswer | None, BatchProgress | None]:
    """A job's budget, the replies it used again, and its batches; nobody is asked about what it has none of."""
    budget, reuse, progress = None, None, None
    budgeted = job.request.get("budget") is not None or job.imported_from is not None
    batched = job.request.get("execution") == Execution.BATCH
    if not (budgeted or batched or _wants_reuse(job)):
        return budget, reuse, progress
    async with single_statements(engine) as connection:
        if budgeted:
            account = await budgets.read_account(connection, job.tenant, job.id)
            budget = None if account is None else _budget(account)
        if _wants_reuse(job):
            reuse = reuse_of(await response_cache.reuse(connection, job.tenant, job.id))
        if batched:
            progress = _batches(await batches.counts(connection, job.tenant, job.id), job.status)
    return budget, reuse, progress


def show_job(job: JobRow) -> Job:
    """A job without its progress."""
    return Job(**shown(job))


def shown(job: JobRow) -> dict[str, Any]:
    """What lists show of a job, too."""
    return {
        "id": job.id,
        "name": job.name,
        "status": job.status,
        "status_reason": job.status_reason,
        "completeness": job.completeness or "partial",
        "simulated": job.simulated,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "spec": job.request,
        "metadata": job.metadata,
        "tags": job.tags,
        "notes": job.notes,
        "archived_at": job.archived_at,
        "models": job.models or (),
        "imported_judges": imported_judges(job.request),
        "scores": job.scores or () if job.status.is_terminal else (),
        "warnings": job.warnings or () if job.status.is_terminal else (),
        "priority": job.priority,
        "error": job.error,
        "imported_from": job.imported_from,
        "links": {
            "self": f"/v1/jobs/{job.id}",
            "events": f"/v1/jobs/{job.id}/events",
            "results": f"/v1/jobs/{job.id}/results",
            "responses": f"/v1/jobs/{job.id}/responses",
            "report": f"/v1/jobs/{job.id}/report?format=html",
        }
        | _link_to_source(job)
        | {
            kind.name: f"{kind.path}/{made}"
            for kind in KINDS
            if (made := made_set_id(job.made_sets, kind)) is not None
        },
    }


def _link_to_source(job: JobRow) -> dict[str, str]:
    """The job whose texts it judges, if it is on another's; that may be gone."""
    texts = job.request.get("responses")
    return {"source": f"/v1/jobs/{texts['job']}"} if isinstance(texts, dict) and "job" in texts else {}


AT_WORK = frozenset({JobStatus.RUNNING, JobStatus.CANCELLING, JobStatus.PAUSED})


def _preparation(job: JobRow, steps: Mapping[str, StepCounts]) -> dict[str, StageProgress]:
    """The stages of PersonaGym's preparation, in their order, for a job that has them.

    They count steps: a persona's environments, a task's questions, a question's exemplars; or the personas that are made up. What was given counts as
    succeeded, as existing texts do.
    """
    return {
        stage.value: _stage(
            found.planned,
            succeeded=found.ready,
            failed=found.failed,
            running=found.running if job.status in AT_WORK else 0,
            estimated=not found.exact,
        )
        for stage in Stage
        if (found := steps.get(stage.value)) is not None
    }


def _progress(job: JobRow, total: Counts, leased: Counts) -> dict[str, StageProgress]:
    """Each stage's parts, which always add up to its total.

    How many verdicts there will be is known only when all texts exist; until then the total is estimated from the
    sentences per response so far, or from the plan.
    """
    at_work = job.status in AT_WORK
    unwritten = total.planned - total.answered - total.failed
    generation = _stage(
        total.planned,
        succeeded=total.answered,
        failed=total.failed,
        running=(leased.planned - leased.answered - leased.failed) if at_work else 0,
        estimated=total.estimated > 0,
    )
    per_response = (
        total.due / total.answered if total.answered else job.expected_verdicts / max(1, total.planned)
    )
    judging = _stage(
        total.due + round(per_response * unwritten),
        succeeded=total.judged,
        failed=total.unjudged,
        running=(leased.due - leased.judged - leased.unjudged) if at_work else 0,
        estimated=unwritten > 0 or total.estimated > 0,
    )
    return {Stage.GENERATION.value: generation, Stage.JUDGING.value: judging}


def _stage(total: int, *, succeeded: int, failed: int, running: int, estimated: bool) -> StageProgress:
    # The counts come from two queries of one moment each; between them work may have ended.
    running = max(0, min(running, total - succeeded - failed))
    return StageProgress(
        total=total,
        pending=total - succeeded - failed - running,
        running=running,
        succeeded=succeeded,
        failed=failed,
        estimated=estimated,
    )


def usage_of(rows: Sequence[UsageRow]) -> JobUsage:
    """Calls and tokens in all, and by stage and model. ``calls`` counts every attempt that was sent."""
    sums = {name: sum(getattr(row, name) for row in rows) for name in Tokens.model_fields}
    return JobUsage.model_validate(sums | {"by_model": rows}, from_attributes=True)


def failures_of(rows: Sequence[FailureRow]) -> list[FailedCalls]:
    """Failed calls, those that failed alike together, each with its remedy."""
    return list(map(FailedCalls.of_row, rows))


def retrying_of(
    status: JobStatus, usage: Sequence[UsageRow], failures: Sequence[FailureRow]
) -> list[Retrying]:
    """The models of which no call of a stage was answered, with what most of their calls failed of."""
    in_vain = {(row.stage, row.model): row.calls for row in usage if 0 < row.calls == row.failed_calls}
    found: dict[tuple[str, str], Retrying] = {}
    for row in failures if status.may_call else ():
        of = row.stage, row.model
        if of not in found and of in in_vain and may_pass(row.http_status):
            found[of] = Retrying(
                stage=row.stage,
                model=row.model,
                attempts=in_vain[of],
                cause=cause(row.code, row.http_status, row.model, row.detail),
                remedy=row.remedy,
            )
    return list(found.values())


def _failed_asks(row: FailedAsksRow, usage: Sequence[UsageRow]) -> FailedAsks:
    reasoner = next((each.model for each in usage if each.stage == row.stage), None)
    shown = {"task": row.task or None, "model": reasoner, "reply": beginning(row.reply)}
    return FailedAsks(**row._asdict() | shown)


def cost_of(rows: Sequence[UsageRow]) -> Cost:
    """US dollars spent, ``None`` if no price is known, and how many calls, their price unknown, are not in the sum."""
    known = [row.usd for row in rows if row.usd is not None]
    return Cost(
        usd=sum(known) if known or not rows else None, unpriced_calls=sum(row.unpriced_calls for row in rows)
    )


def _wants_reuse(job: JobRow) -> bool:
    """Whether a job may use replies again, by what it was asked for: its specification is too large for a poll."""
    return any(scope != ReuseScope.OFF for scope in (job.request.get("reuse") or {}).values())


def reuse_of(rows: Sequence[ReuseRow]) -> ReuseAnswer:
    """The replies that were used again, in all and by stage and model, and what the calls would have taken."""
    return ReuseAnswer(
        **_spared(rows),
        oldest=min((row.oldest for row in rows), default=None),
        by_model=[SparedByModel(stage=row.stage, model=row.model, **_spared([row])) for row in rows],
    )


def _spared(rows: Sequence[ReuseRow]) -> dict[str, Any]:
    names = ("same_job", "other_job", "input_tokens", "output_tokens")
    known = [row.usd for row in rows if row.usd is not None]
    return {name: sum(getattr(row, name) for row in rows) for name in names} | {
        "usd": sum(known) if known or not rows else None,
        "unpriced_replies": sum(row.unpriced for row in rows),
    }


def _budget(account: Account) -> BudgetAnswer | None:
    """Each limit that the job has, with what of it is spent, reserved for calls on their way, and left."""
    limits, spent, reserved = account.limits, account.spent, account.reserved
    if limits == NO_LIMITS:
        return None
    parts: dict[str, Any] = {
        kind: _limit(*(getattr(amount, unit) for amount in (limits, spent, reserved)))
        for kind, unit in UNITS.items()
    }
    if parts["usd"] is not None:
        parts["usd"] = {name: nanos / NANOS for name, nanos in parts["usd"].items()}
    return BudgetAnswer.model_validate(parts | {"exceeded_calls": account.exceeded})


def _limit(limit: int | None, spent: int, reserved: int) -> dict[str, int] | None:
    if limit is None:
        return None
    left = max(0, limit - spent - reserved)
    return {"limit": limit, "spent": spent, "reserved": reserved, "remaining": left}


def _batches(counts: batches.Counts, status: JobStatus) -> BatchProgress:
    return BatchProgress(
        open=counts.open,
        ended=counts.ended,
        calls_in_open=counts.calls,
        calls_waiting=counts.waiting,
        cut_for_budget=counts.cut,
        waiting_for=_waiting_for(counts, ends=status in ENDING) if counts.open else None,
    )


def _waiting_for(counts: batches.Counts, *, ends: bool) -> str:
    words = "1 batch" if counts.open == 1 else f"{counts.open:,} batches"
    if counts.submitted_at is None:
        words += ", not submitted yet"
    else:
        oldest = "" if counts.open == 1 else "the oldest "
        words += f", {oldest}submitted at {counts.submitted_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if counts.failures:
        words += f"; the provider could not be asked {counts.failures} {'time' if counts.failures == 1 else 'times'} in a row"
    if not ends:
        return words
    it = "it" if counts.open == 1 else "them"
    words += f"; the job ends when the provider has ended {it}"
    if counts.give_up_at is not None:
        words += (
            f", and gives up at {counts.give_up_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC;"
            " cancel it again to give up now"
        )
    return words
