"""Advances a batch by one step: submit it, poll it, collect its answers. Nothing blocks in between.

Where a batch stands is in its row before the provider is asked for anything that costs. Its name there (or, where
the provider keeps no names, its size and time) tells a worker that comes after a crash whether it was submitted.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from http import HTTPStatus
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.batches import batches
from app.db.batches import files as batch_files
from app.db.batches.batches import Lease
from app.db.execution import shards
from app.db.health import is_away
from app.db.jobs import jobs
from app.domain.jobs.status import ACTIVE, ENDING, JobStatus
from app.domain.providers.failure import BATCH_NOT_FOUND, NO_BATCH_ENDPOINTS
from app.ports import (
    BATCH_LOST,
    AnswersIncompleteError,
    BatchRefusedError,
    BatchTooLargeError,
    FailureKind,
    ModelCallError,
    UploadedBatch,
)
from app.services.batches.files import CLOCK_SKEW, file_name
from app.services.errors import CallNotAllowedError
from app.services.execution.retries import JobMustStopError, longest_wait
from app.services.execution.shard_work import ShardDependencies
from app.services.execution.stopping import (
    INTERNAL_ERROR,
    MAX_SHARD_FAILURES,
    halt_job,
    internal_error,
    not_allowed,
    settle,
)
from app.services.identifiers import new_uuid
from app.services.keys.tenant_limits import is_resumed

log = structlog.get_logger(__name__)

CHUNK = 500
"""Calls that are read or written at a time."""

RENEWALS_PER_LEASE = 4
LONGEST_BACKOFF_SECONDS = 600.0
FEWEST_CALLS = 10
"""A batch of no more calls is not split for tokens that are enqueued now."""

MOST_SUBMISSIONS = 3
"""So often a batch is submitted that its provider turns down as a whole, for reasons that may pass; then the job stops."""

MOST_MISSES = 5
"""Answers in a row that the provider has no such batch; then the job is paused, while the batch is still asked for."""

TOO_LARGE = "batch_too_large"
"""Code of a single call that the provider takes in no batch, however long we wait."""


class _LeaseLostError(Exception):
    """Somebody else looks after the batch."""


async def advance_batch(deps: ShardDependencies, batch_id: int) -> None:
    """Does what a batch needs now; does nothing if somebody else is at it."""
    async with deps.engine.begin() as connection:
        held = await batches.lease(connection, batch_id, deps.lease_seconds)
    if held is None:
        return
    with structlog.contextvars.bound_contextvars(job=held.job_id, batch=held.id):
        advancing = asyncio.create_task(_advance(deps, held))
        keeping = asyncio.create_task(_keep(deps, held))
        try:
            await asyncio.wait({advancing, keeping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (advancing, keeping):
                task.cancel()
        for outcome in await asyncio.gather(advancing, keeping, return_exceptions=True):
            # Its lease runs out, and somebody goes on from where it stands.
            if isinstance(outcome, Exception):
                log.warning("batch not given back", error=type(outcome).__name__)


async def _keep(deps: ShardDependencies, held: Lease) -> None:
    """Renews a lease; returns when it is lost."""
    while True:
        await asyncio.sleep(deps.lease_seconds / RENEWALS_PER_LEASE)
        try:
            async with deps.engine.begin() as connection:
                if not await batches.keep(connection, held, deps.lease_seconds):
                    return
        except Exception as error:  # noqa: BLE001 - the fence protects the rows; the next round tries again
            log.warning("lease of a batch not renewed", error=type(error).__name__)


async def _advance(deps: ShardDependencies, held: Lease) -> None:
    try:
        seconds, failed, erred = await _step(deps, held), False, False
    except _LeaseLostError:
        return
    except CallNotAllowedError as error:
        await _pause(deps, held, error)
        return
    except BatchTooLargeError as error:
        seconds, failed, erred = await _make_smaller(deps, held, error), False, False
    except ModelCallError as error:
        seconds, failed, erred = await _provider_failed(deps, held, error), True, False
    except Exception as error:
        erred = not is_away(error)
        if erred:
            log.exception("batch not looked after")
            await _our_failure(deps, held, error)
        seconds, failed = _back_off(deps, held.errors), False
    async with deps.engine.begin() as connection:
        await batches.release(connection, held, seconds, failed=failed, erred=erred)


async def _step(deps: ShardDependencies, held: Lease) -> float:
    """The next thing to do; in how many seconds there may be another one."""
    if held.state == "formed" and held.status not in ACTIVE:
        if held.status in ENDING:
            await _dissolve(deps, held)
        return LONGEST_BACKOFF_SECONDS  # whoever resumes the job has it looked after
    await deps.batching.chat.prepare(held.connection, held.tenant)
    if held.state == "formed":
        return await _submit(deps, held)
    if held.state == "submitting":
        return await _find(deps, held)
    return await _poll(deps, held)


# -- submitting -------------------------------------------------------------------------------------------------------


async def _submit(deps: ShardDependencies, held: Lease) -> float:
    async with deps.engine.connect() as connection:
        behind = await batches.is_behind(connection, held)
    if behind:  # where the provider refuses even the other one, this one is not uploaded for nothing
        return deps.batching.poll_seconds
    context = await deps.contexts.get(held.tenant, held.job_id)
    async with deps.engine.connect() as connection:
        await deps.call_rules.check(connection, held.tenant, held.job_id, context.spec)
    uploaded = await _upload(deps, held)
    async with deps.engine.begin() as connection:
        number = await batches.begin_submission(connection, held)
        if number is None:
            await batch_files.release(connection, held.id)
    if number is None:
        return deps.batching.poll_seconds
    try:
        provider_id = await uploaded.submit(_name(held, number))
    except ModelCallError as error:
        if _was_not_taken(error):
            await _not_submitted(deps, held)
        raise
    except BatchTooLargeError:
        await _not_submitted(deps, held)
        raise
    async with deps.engine.begin() as connection:
        await batches.submitted(connection, held, provider_id)
    log.info("batch submitted", calls=held.calls, model=f"{held.connection}/{held.model}")
    return deps.batching.poll_seconds


async def _upload(deps: ShardDependencies, held: Lease) -> UploadedBatch:
    """Has the provider take the calls. What it may keep of them is noted before, so that nothing is left there."""
    id_ = new_uuid()
    async with deps.engine.begin() as connection:
        await _check(deps, connection, held)
        await batch_files.begin(connection, held.id, id_)
    uploaded = await deps.batching.chat.upload(held.connection, file_name(id_), _requests(deps, held))
    async with deps.engine.begin() as connection:
        if uploaded.file_id is None:
            await batch_files.forget(connection, id_)
        else:
            await batch_files.uploaded(connection, id_, uploaded.file_id)
    return uploaded


def _was_not_taken(error: ModelCallError) -> bool:
    """Whether an error proves that there is no batch. A 5xx may come after it was made: it is looked for."""
    if error.status is None:
        return not error.maybe_paid
    return error.status < HTTPStatus.INTERNAL_SERVER_ERROR and error.status != HTTPStatus.REQUEST_TIMEOUT


def _name(held: Lease, number: int) -> str:
    """What the provider is told that a batch is called: different in every submission of every installation."""
    return f"{held.job_id}/{held.id}/{number}"


async def _requests(deps: ShardDependencies, held: Lease) -> AsyncIterator[tuple[str, str]]:
    last: UUID | None = None
    while True:
        async with deps.engine.connect() as connection:
            chunk = await batches.requests(connection, held.id, last, CHUNK)
        for _, custom_id, request in chunk:
            yield custom_id, request
        if len(chunk) < CHUNK:
            return
        last = chunk[-1][0]


async def _find(deps: ShardDependencies, held: Lease) -> float:
    """Looks for a batch whose submission was interrupted, so that it is neither lost nor submitted twice."""
    if held.submitted_at is None:
        raise RuntimeError("a batch is being submitted since never")
    since = held.submitted_at - CLOCK_SKEW
    async with deps.engine.connect() as connection:
        known = await batches.known_ids(connection, held.connection)
    name = _name(held, held.submissions)
    found = await deps.batching.chat.find(held.connection, name, held.calls, since, known)
    ours = False
    if found is not None:
        async with deps.engine.begin() as connection:
            ours = await batches.submitted(connection, held, found)
    if not ours:  # also where it is another one of ours after all
        await _not_submitted(deps, held)
        return 0.0
    log.info("interrupted submission found", calls=held.calls)
    return 0.0


async def _not_submitted(deps: ShardDependencies, held: Lease) -> None:
    async with deps.engine.begin() as connection:
        await batches.not_submitted(connection, held)


async def _dissolve(deps: ShardDependencies, held: Lease) -> None:
    async with deps.engine.begin() as connection:
        status = await jobs.lock_job(connection, held.job_id)
        await _check(deps, connection, held)
        await batches.dissolve(connection, held)
        settled = status in ENDING and await settle(connection, held.job_id, status)
    if settled:
        await deps.finalize(held.job_id)


async def _make_smaller(deps: ShardDependencies, held: Lease, error: BatchTooLargeError) -> float:
    """Splits a batch that is too large for the provider, unless it may take it when others have ended.

    They may be another program's with the same key. So a small one waits however long that takes.
    """
    other: int | None = None
    async with deps.engine.begin() as connection:
        await jobs.lock_job(connection, held.job_id)
        await _check(deps, connection, held)
        await batches.not_submitted(connection, held)
        small = held.calls <= FEWEST_CALLS
        wait = error.for_now and (small or await batches.any_other_submitted(connection, held))
        if not wait:
            other = await batches.halve(connection, held)
    if not wait and other is None:
        await _halt(deps, held, TOO_LARGE, error)
    log.info("batch too large", calls=held.calls, split=not wait)
    return _back_off(deps, held.submissions) if error.for_now else 0.0


# -- waiting and collecting -------------------------------------------------------------------------------------------


async def _poll(deps: ShardDependencies, held: Lease) -> float:
    chat, provider_id = deps.batching.chat, held.provider_id
    if provider_id is None:
        raise RuntimeError("a submitted batch has no id")
    try:
        ended = await chat.has_ended(held.connection, provider_id)
    except (BatchRefusedError, BatchTooLargeError):
        await _not_submitted(deps, held)
        raise
    if not ended:
        if held.status in ENDING:
            await chat.cancel(held.connection, provider_id)
            await _give_up_if_due(deps, held)
        return deps.batching.poll_seconds
    await _collect(deps, held, provider_id)
    return 0.0


async def _collect(deps: ShardDependencies, held: Lease, provider_id: str) -> None:
    """Keeps all answers, some at a time, and then ends the batch."""
    seen = ours = 0
    chunk: list[tuple[str, str]] = []
    incomplete = False
    try:
        async with contextlib.aclosing(deps.batching.chat.answers(held.connection, provider_id)) as answers:
            async for answer in answers:
                chunk.append(answer)
                if len(chunk) == CHUNK:
                    seen, ours = seen + len(chunk), ours + await _store(deps, held, chunk)
                    chunk = []
    except AnswersIncompleteError:
        if held.failures < batches.MOST_FAILURES:
            raise  # they are read again, from the beginning
        incomplete = True
    seen, ours = seen + len(chunk), ours + await _store(deps, held, chunk)
    # Another's batch, taken for ours after a crash: where ours is, and whether it is paid, nobody knows.
    # Nor does anybody where answers that the provider counts are not to be had.
    await _end(deps, held, BATCH_LOST if incomplete or (seen and not ours) else "")
    log.info("batch ended", calls=held.calls, answers=ours)


async def _store(deps: ShardDependencies, held: Lease, answers: list[tuple[str, str]]) -> int:
    async with deps.engine.begin() as connection:
        await _check(deps, connection, held)
        return await batches.store_answers(connection, held, answers)


async def _check(deps: ShardDependencies, connection: AsyncConnection, held: Lease) -> None:
    if not await batches.keep(connection, held, deps.lease_seconds):
        raise _LeaseLostError


async def _end(deps: ShardDependencies, held: Lease, unanswered: str) -> None:
    announced: list[int] = []
    settled = False
    async with deps.engine.begin() as connection:
        status = await jobs.lock_job(connection, held.job_id)
        if await batches.end(connection, held, unanswered):
            below = None if status in ACTIVE else MAX_SHARD_FAILURES
            announced = await shards.refill(connection, held.job_id, deps.window, answered_below=below)
            settled = status in ENDING and await settle(connection, held.job_id, status)
    async with deps.engine.begin() as connection:  # of its own: the other batch may be another job's
        await batches.hasten_next(connection, held)
    await deps.queue.announce_shards(announced)
    if settled:
        await deps.finalize(held.job_id)


# -- failures ---------------------------------------------------------------------------------------------------------


async def _provider_failed(deps: ShardDependencies, held: Lease, error: ModelCallError) -> float:
    """What follows from an error of the provider; in how many seconds it is asked again."""
    log.warning("provider did not serve a batch", code=error.code, status=error.status)
    await _give_up_if_due(deps, held)
    turned_down = isinstance(error, BatchRefusedError) and held.submissions < MOST_SUBMISSIONS
    missing = error.status == HTTPStatus.NOT_FOUND
    may_come_back = missing and held.state != "formed" and held.failures < MOST_MISSES
    if error.kind is not FailureKind.RETRY and not turned_down and not may_come_back:
        code = error.code
        if missing:
            code = NO_BATCH_ENDPOINTS if held.state == "formed" else BATCH_NOT_FOUND
        await _halt(deps, held, code, error)
    return max(error.retry_after or 0.0, _back_off(deps, held.failures))


async def _halt(deps: ShardDependencies, held: Lease, code: str, error: Exception) -> None:
    await halt_job(deps.engine, held.job_id, _fatal(held, code, str(error)), claimed_at=held.leased_at)


async def _give_up_if_due(deps: ShardDependencies, held: Lease) -> None:
    """End a batch for which its job, which ends, waits no longer; its calls count as perhaps paid."""
    if held.status in ENDING and held.overdue:
        await _end(deps, held, BATCH_LOST)


def _fatal(held: Lease, code: str, message: str) -> JobMustStopError:
    return JobMustStopError(code, message, f"{held.connection}/{held.model}")


async def _our_failure(deps: ShardDependencies, held: Lease, error: Exception) -> None:
    """After so many errors of ours the job is paused instead of trying for ever."""
    await _give_up_if_due(deps, held)
    if held.errors + 1 < MAX_SHARD_FAILURES:
        return
    with contextlib.suppress(Exception):
        async with deps.engine.begin() as connection:
            await jobs.move(
                connection,
                held.job_id,
                to=JobStatus.PAUSED,
                reason=INTERNAL_ERROR,
                error=internal_error(error, batch=held.id),
            )


async def _pause(deps: ShardDependencies, held: Lease, error: CallNotAllowedError) -> None:
    """Pause a job one of whose calls is not allowed, unless its tenant was resumed meanwhile."""
    async with deps.engine.begin() as connection:
        if await is_resumed(connection, held.tenant, error):
            await batches.release(connection, held, 0.0)
            return
        await jobs.move(
            connection, held.job_id, to=JobStatus.PAUSED, reason=error.code, error=not_allowed(error)
        )
        # In the same transaction: resuming the job hastens it.
        await batches.release(connection, held, LONGEST_BACKOFF_SECONDS)


def _back_off(deps: ShardDependencies, times: int) -> float:
    """Seconds to wait after so many failures."""
    longest = longest_wait(deps.batching.poll_seconds, LONGEST_BACKOFF_SECONDS, times)
    return longest * random.uniform(0.5, 1)  # noqa: S311 - jitter
