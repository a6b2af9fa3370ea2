"""Submits a job: one transaction writes it with its shards; only then are workers woken."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import shards
from app.db.jobs import budgets, idempotency, jobs
from app.db.jobs.budgets import NOBODY, Payers
from app.db.jobs.call_rules import CallFacts
from app.db.jobs.copied_texts import TextsGoneError
from app.db.jobs.jobs import JobRow
from app.db.jobs.new_jobs import (
    NewCell,
    NewPreparation,
    NewShard,
    insert_job,
)
from app.db.sets import sets
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.budget import NANOS, Budget, nanos_of
from app.domain.jobs.catalog import Catalog, KeptSets
from app.domain.jobs.execution import BATCHED_STAGES, Execution
from app.domain.jobs.personagym_plan import (
    estimate_gym,
    merged,
    preparations_of,
)
from app.domain.jobs.plan import (
    Cell,
    GymCell,
    estimate,
    gym,
    responses_per_run,
    shards_of,
)
from app.domain.jobs.priority import Priority
from app.domain.jobs.request import GenerateIn, JobIn
from app.domain.jobs.resolve import Resolution, beyond, resolve
from app.domain.jobs.resolve_generation import resolve_generation
from app.domain.jobs.specification import encode_spec
from app.domain.jobs.stage_estimate import StageEstimate, follow_ups
from app.domain.jobs.status import JobStatus
from app.ports import PriceBook, Queue
from app.services.errors import CallNotAllowedError, IdempotencyConflictError, SpendingCapError
from app.services.execution.stopping import settle
from app.services.idempotency import ClientKey
from app.services.identifiers import new_id
from app.services.jobs.existing_texts import (
    ExistingText,
    Position,
    estimates_of_existing,
    existing_texts,
    shards_of_existing,
    with_checks,
    with_sample,
)
from app.services.jobs.planning import Check, Gone, PlanningPool
from app.services.jobs.text_sources import exemplars_of_answers, exemplars_of_source, stored_texts
from app.services.keys.tenant_limits import admit_job
from app.services.providers.call_rules import CallRules, has_price
from app.services.providers.catalog import with_connections
from app.services.providers.connection_book import ConnectionBook
from app.services.sets.sets import kept_sets, sets_named
from app.services.uploads.uploads import uploaded_texts
from app.telemetry.tracing import traceparent


@dataclass(frozen=True, slots=True)
class SubmissionDependencies:
    """What submitting and planning take."""

    engine: AsyncEngine
    catalog: Catalog
    queue: Queue
    window: int
    max_planned_calls: int
    confirm_calls_above: int
    max_unfinished_jobs: int
    prices: PriceBook
    book: ConnectionBook
    planning: PlanningPool = field(default_factory=PlanningPool)

    @property
    def call_rules(self) -> CallRules:
        """The rules for the job's calls."""
        return CallRules(self.book, self.prices)

    async def of_tenant(self, tenant: str, wanted: JobIn | None = None) -> "SubmissionDependencies":
        """The same with the connections that a tenant's jobs can name, and the tenant's sets that a job names."""
        catalog = with_connections(self.catalog, await self.book.of_tenant(tenant))
        kept = KeptSets() if wanted is None else await kept_sets(self.engine, tenant, wanted)
        if wanted is not None and wanted.source is not None:
            texts = await stored_texts(self.engine, tenant, wanted, catalog)
            examples = await exemplars_of_source(self.engine, tenant, wanted.source.job)
            kept = replace(kept, texts=texts, exemplars=examples)
        if wanted is not None and wanted.upload is not None:
            kept = replace(
                kept,
                uploaded=await uploaded_texts(
                    self.engine, tenant, wanted.upload, wanted.judging.leave_out or ()
                ),
            )
        catalog = replace(catalog, kept=kept)
        if wanted is not None and (
            examples := await exemplars_of_answers(self.engine, tenant, wanted, catalog)
        ):
            catalog = replace(catalog, kept=replace(kept, exemplars=examples))
        return replace(self, catalog=catalog)


@dataclass(frozen=True, slots=True)
class Submission:
    """A request for a job.

    Attributes:
        wanted: What to run, or the personas to make up.
        sent: The body as it came, to be shown again in its own words; existing texts and questions are left out of it.
        name: For people.
        idempotency_key: The client's key, if it gave one.
        capped_key: The API key that submits it, if there is a cap on what its jobs spend together.
        gone: Whether who submits it has gone; then it is planned no further, and there is no job.
    """

    wanted: JobIn | GenerateIn
    sent: Mapping[str, Any]
    name: str | None
    idempotency_key: str | None = None
    capped_key: str | None = None
    gone: Gone | None = None


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A resolved job with all its parts, ready to be written or only to be looked at."""

    resolution: Resolution
    shards: tuple[NewShard, ...]
    responses: tuple[ExistingText, ...]
    preparations: tuple[NewPreparation, ...]
    estimates: tuple[StageEstimate, ...]

    @property
    def planned_responses(self) -> int:
        """Responses that the job will have."""
        return sum(shard.planned_responses for shard in self.shards)

    @property
    def expected_verdicts(self) -> int:
        """Verdicts and grades, estimated for texts that don't exist yet."""
        imported = sum(shard.verdicts_answered + shard.verdicts_failed for shard in self.shards)
        return imported + sum(e.verdicts for e in self.estimates)

    @property
    def exact(self) -> bool:
        """Whether the number of responses is known."""
        return all(shard.planned_exactly for shard in self.shards)

    @property
    def calls(self) -> int:
        """All calls, estimated."""
        return sum(e.calls for e in self.estimates)

    @property
    def follow_ups(self) -> list[StageEstimate]:
        """The most repairs and refusal checks that may come on top."""
        return follow_ups(self.resolution.spec, self.estimates)

    @property
    def most_calls(self) -> int:
        """All calls with the most repairs and refusal checks."""
        return self.calls + sum(e.calls for e in self.follow_ups)


@dataclass(frozen=True, slots=True)
class WrittenJob:
    """A job as it was written, and what the queue is to be told of.

    Attributes:
        row: The job's row.
        announced: Its shards that can be claimed.
        settled: Whether it can be finalized at once.
    """

    row: JobRow
    announced: Sequence[int]
    settled: bool


def prepare_job(deps: SubmissionDependencies, wanted: JobIn, check: Check = lambda: None) -> PreparedJob:
    """Resolves a request and lays out its parts; spends nothing and writes nothing.

    Args:
        deps: What it takes.
        wanted: The job.
        check: Called between the parts; raises where nobody waits for them.

    Raises:
        InvalidJobError: If the job can't be run as it is described.
    """
    resolution = resolve(wanted, deps.catalog, deps.max_planned_calls)
    check()
    _refuse_unpriced(deps.prices, wanted, resolution)
    cells = resolution.cells
    if resolution.spec.provided:
        rules = deps.catalog.rules.load(resolution.spec.instrument)
        resolution, responses = with_checks(resolution, existing_texts(rules, resolution, check))
        estimates = estimates_of_existing(resolution, responses)
        planned = shards_of_existing(resolution, responses)
    else:
        responses = ()
        resolution = with_sample(resolution, _judged_positions(cells))
        check()
        estimates = _estimates(resolution)
        check()
        planned = tuple(_generating_shards(resolution))
    prepared = PreparedJob(resolution, planned, responses, _preparations(resolution), tuple(estimates))
    _refuse_beyond(deps.max_planned_calls, prepared.calls)
    return prepared


def calls_to_confirm(deps: SubmissionDependencies, prepared: PreparedJob) -> int | None:
    """Return the most calls of a job if they need a confirmation; ``None`` if they are few, or all models simulated."""
    costs_nothing = all(model.simulated for model in prepared.resolution.spec.called)
    most = prepared.most_calls
    return None if costs_nothing or most <= deps.confirm_calls_above else most


def prepare_generation(deps: SubmissionDependencies, wanted: GenerateIn) -> PreparedJob:
    """A job whose only shard is a preparation: it makes up personas.

    Raises:
        InvalidJobError: If there is no such model.
    """
    resolution = resolve_generation(wanted, deps.catalog)
    making = NewPreparation(0, 0, 0, 0, planned_exactly=True, personas=wanted.count)
    return PreparedJob(resolution, (), (), (making,), ())


def _refuse_unpriced(prices: PriceBook, wanted: JobIn, resolution: Resolution) -> None:
    """A budget in money can only be kept where every call has a price."""
    if _limit_in_dollars(wanted) is None:
        return
    unpriced = _unpriced(prices, resolution)
    if unpriced:
        message = f"no price is known for {unpriced}; limit calls or tokens instead, or ask the operator to configure its price"
        raise InvalidJobError([FieldError("/budget/usd", message)])


def _unpriced(prices: PriceBook, resolution: Resolution) -> str:
    """The models that are called and have no known price."""
    return ", ".join(
        sorted({model.full_name for model in resolution.spec.called if not has_price(prices, model)})
    )


def _estimates(resolution: Resolution) -> list[StageEstimate]:
    spec, cells = resolution.spec, resolution.cells
    of_atomic = estimate(spec, cells)
    return of_atomic if spec.gym is None else merged([*of_atomic, *estimate_gym(spec, spec.gym, gym(cells))])


def _generating_shards(resolution: Resolution) -> Iterator[NewShard]:
    for shard in shards_of(resolution.spec, resolution.cells):
        cell = resolution.cells[shard.cell]
        prepared = isinstance(cell, GymCell)
        yield NewShard(
            shard.cell,
            shard.run_start,
            shard.run_stop,
            shard.responses,
            after=cell.person if prepared else None,
            planned_exactly=cell.exact if isinstance(cell, GymCell) else True,
        )


def _preparations(resolution: Resolution) -> tuple[NewPreparation, ...]:
    spec = resolution.spec
    if spec.gym is None:
        return ()
    return tuple(
        NewPreparation(p.person, p.environments, p.questions, p.exemplars, p.exact)
        for p in preparations_of(spec, spec.gym)
    )


def _refuse_beyond(allowed: int, calls: int) -> None:
    if calls > allowed:
        raise InvalidJobError([FieldError("", beyond(calls, allowed))])


def _judged_positions(cells: Sequence[Cell]) -> Iterator[Position]:
    """The personas' responses whose sentences will be judged, as far as is known."""
    return (
        (cell.ordinal, run, item)
        for cell in cells
        if cell.dimensions and not cell.control
        for run in range(cell.runs)
        for item in range(responses_per_run(cell))
    )


async def submit_job(deps: SubmissionDependencies, tenant: str, submission: Submission) -> JobRow:
    """Accepts a job, or returns the one that the same ``Idempotency-Key`` and body already made.

    Raises:
        InvalidJobError: If the job can't be run as it is described.
        IdempotencyConflictError: If the key came with another body within the last day.
        SpendingCapError: If the cap of the API key or the tenant does not leave enough for it.
        CallNotAllowedError: If the operator has paused the tenant.
        TooManyJobsError: If the tenant has too many unfinished jobs.
    """
    client_key = None
    if submission.idempotency_key is not None:
        client_key = await asyncio.to_thread(ClientKey.of, submission.idempotency_key, submission.sent)
    if client_key is not None:
        async with deps.engine.connect() as connection:
            made = await client_key.made_before(connection, tenant)
            if made is not None:
                return await _earlier_job(connection, tenant, made)
    prepared = await check_submission(deps, tenant, submission)
    async with deps.engine.connect() as connection:
        written = await write_job(deps, connection, tenant, submission, prepared)
        if client_key is not None:
            held = await idempotency.claim_key(
                connection, tenant, client_key.key, client_key.body_hash, job_id=written.row.id
            )
            if held is not None:
                await connection.rollback()
                return await _earlier_job(connection, tenant, client_key.made_by(held))
        await connection.commit()
    await announce_job(deps.queue, written)
    return written.row


async def write_job(
    deps: SubmissionDependencies,
    connection: AsyncConnection,
    tenant: str,
    submission: Submission,
    prepared: PreparedJob,
) -> WrittenJob:
    """Writes a job in the caller's transaction; if that commits, :func:`announce_job` is due.

    Raises:
        InvalidJobError: If its texts were deleted meanwhile, or a call is not allowed.
        SpendingCapError: If the cap of the API key or the tenant does not leave enough for it.
        CallNotAllowedError: If the operator has paused the tenant.
        TooManyJobsError: If the tenant has too many unfinished jobs.
    """
    job_id = new_id("job")
    payers, models = await admit_job(connection, tenant, submission.capped_key, deps.max_unfinished_jobs)
    await _keep_caps(deps.prices, connection, payers, submission, prepared)
    try:
        await _insert(connection, tenant, job_id, submission, prepared, payers)
    except TextsGoneError:
        gone = FieldError("/responses", "the texts were deleted meanwhile")
        raise InvalidJobError([gone]) from None
    try:
        facts = CallFacts(
            imported=False,
            in_dollars=payers != NOBODY or _limit_in_dollars(submission.wanted) is not None,
            preparing=bool(prepared.preparations),
            models=models,
            paused=False,
        )
        await deps.call_rules.check_new(connection, tenant, prepared.resolution.spec, facts)
    except CallNotAllowedError as error:
        raise InvalidJobError([FieldError("", f"{error}. {error.remedy}")]) from error
    announced = await shards.refill(connection, job_id, deps.window)
    settled = await _settled(connection, job_id, prepared)
    row = await jobs.get_job(connection, tenant, job_id)
    if row is None:
        raise RuntimeError(f"{job_id} vanished inside its own transaction")
    return WrittenJob(row, announced, settled)


async def announce_job(queue: Queue, written: WrittenJob) -> None:
    """Tells the queue of a job that is committed; a job that nobody announces, the sweeper does."""
    await queue.announce_shards(written.announced)
    if written.settled:
        await queue.announce_finalize(written.row.id)


async def check_submission(deps: SubmissionDependencies, tenant: str, submission: Submission) -> PreparedJob:
    """A job as it would be submitted now; spends nothing and writes nothing.

    Raises:
        InvalidJobError: If it can't be run as it is described.
    """
    prepared = await _prepared(deps, tenant, submission)
    _refuse_unconfirmed(deps, submission.wanted, prepared)
    return prepared


async def _settled(connection: AsyncConnection, job_id: str, prepared: PreparedJob) -> bool:
    """Whether a job can be finalized at once, because all its judges are imported; marks it as begun."""
    if prepared.preparations or not all(shard.done for shard in prepared.shards):
        return False
    await shards.start_job(connection, job_id)
    return await settle(connection, job_id, JobStatus.RUNNING)


def _refuse_unconfirmed(
    deps: SubmissionDependencies, wanted: JobIn | GenerateIn, prepared: PreparedJob
) -> None:
    """Refuse a job with more calls than confirmed, or than allowed without confirmation."""
    if isinstance(wanted, GenerateIn):
        return
    accepted, limit = wanted.confirm_calls, "that confirm_calls accepts"
    if accepted is None and calls_to_confirm(deps, prepared) is not None:
        accepted, limit = deps.confirm_calls_above, "that need no confirmation"
    most = prepared.most_calls
    if accepted is None or most <= accepted:
        return
    unpriced = _unpriced(deps.prices, prepared.resolution)
    cost = f"${_expected_usd(deps.prices, prepared):,.2f}" + (
        f" and the unknown price of {unpriced}" if unpriced else ""
    )
    further = "" if most == prepared.calls else ", the others only for unreadable replies or unsure refusals"
    message = (
        f"the job may need up to {most:,} calls, more than the {accepted:,} {limit}"
        f" (about {prepared.calls:,} for about {cost} are expected{further}); set confirm_calls to {most} or more"
    )
    raise InvalidJobError([FieldError("/confirm_calls", message)])


async def _keep_caps(
    prices: PriceBook,
    connection: AsyncConnection,
    payers: Payers,
    submission: Submission,
    prepared: PreparedJob,
) -> None:
    """Refuses a job that would certainly pause in the middle, for want of what its API key or its tenant may spend."""
    caps = await budgets.read_caps(connection, payers)
    if not caps:
        return
    unpriced = _unpriced(prices, prepared.resolution)
    expected = nanos_of(_expected_usd(prices, prepared))
    limit = _limit_in_dollars(submission.wanted)
    if limit is not None:
        expected = min(expected, nanos_of(limit))
    for cap in caps:
        if unpriced:
            raise SpendingCapError(f"the {cap.of} has a spending cap, and no price is known for {unpriced}")
        if not cap.nanos_left or expected > cap.nanos_left:
            raise SpendingCapError(
                f"the job is expected to cost about ${expected / NANOS:,.2f}; the {cap.of}'s spending cap of"
                f" ${cap.nanos_limit / NANOS:,.2f} leaves ${cap.nanos_left / NANOS:,.2f}"
            )


def _limit_in_dollars(wanted: JobIn | GenerateIn) -> float | None:
    return wanted.budget.usd if isinstance(wanted, JobIn) and wanted.budget is not None else None


def _expected_usd(prices: PriceBook, prepared: PreparedJob) -> float:
    execution = prepared.resolution.spec.execution
    return sum(
        prices.price(
            e.model,
            e.usage,
            batched=execution is Execution.BATCH and e.stage in BATCHED_STAGES,
        ).usd
        or 0.0
        for e in prepared.estimates
    )


async def _prepared(deps: SubmissionDependencies, tenant: str, submission: Submission) -> PreparedJob:
    wanted = submission.wanted
    if isinstance(wanted, GenerateIn):
        return prepare_generation(await deps.of_tenant(tenant), wanted)
    own = await deps.of_tenant(tenant, wanted)
    return await deps.planning.run(
        tenant, "submission", lambda check: prepare_job(own, wanted, check), submission.gone
    )


async def _earlier_job(connection: AsyncConnection, tenant: str, job_id: str) -> JobRow:
    row = await jobs.get_job(connection, tenant, job_id)
    if row is None:
        raise IdempotencyConflictError
    return row


async def _insert(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    submission: Submission,
    prepared: PreparedJob,
    payers: Payers,
) -> None:
    wanted, resolution = submission.wanted, prepared.resolution
    spec = resolution.spec
    await insert_job(
        connection,
        {
            "id": job_id,
            "tenant": tenant,
            "name": submission.name,
            "request": _shown(submission.sent),
            "spec": encode_spec(spec),
            "simulated": any(model.simulated for model in (*spec.models, *spec.called)),
            "tags": wanted.tags if isinstance(wanted, JobIn) else [],
            "metadata_": wanted.metadata if isinstance(wanted, JobIn) else {},
            "planned_responses": prepared.planned_responses,
            "expected_verdicts": prepared.expected_verdicts,
            "priority": wanted.priority if isinstance(wanted, JobIn) else Priority.NORMAL.value,
            "traceparent": traceparent(),
            "models": list(dict.fromkeys(spec.models[cell.model].label for cell in resolution.cells)),
            "tasks": list(dict.fromkeys(cell.task.id for cell in resolution.cells)),
        },
        [
            NewCell(cell.ordinal, spec.models[cell.model].label, cell.persona.id, cell.task.id)
            for cell in resolution.cells
        ],
        prepared.shards,
        prepared.responses,
        prepared.preparations,
        resolution.given,
    )
    budget = None
    if isinstance(wanted, JobIn):
        await sets.note_named(connection, tenant, job_id, sets_named(wanted))
        budget = wanted.budget
    if budget is not None or payers != NOBODY:
        limits = Budget() if budget is None else budget.to_budget()
        await budgets.insert_budget(connection, tenant, job_id, limits, payers)


def _shown(request: Mapping[str, Any]) -> dict[str, Any]:
    """A body without what would make every poll of the job as large as its input."""
    shown = {
        name: value
        for name, value in request.items()
        if name != "responses" or (isinstance(value, dict) and {"job", "upload"} & value.keys())
    }
    if isinstance(shown.get("questions"), dict):
        del shown["questions"]
    return shown
