"""Withdraws what was made of replies that may belong to other requests, in their shard's turn or after its end."""

import asyncio
from collections import defaultdict
from collections.abc import Collection

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import response_cache, shards, stored_rows
from app.db.execution.shard_counts import refresh_usage
from app.db.execution.shards import AnyClaim, Claim
from app.db.health import is_away
from app.db.jobs import jobs
from app.db.jobs.retries import reopen_shards
from app.db.reasons import reason
from app.db.webhooks import webhooks
from app.domain.jobs.contract import JobError
from app.domain.jobs.status import ENDING, JobStatus
from app.domain.providers.failure import SUSPECT_REPLY
from app.domain.webhooks.webhook import WebhookEvent
from app.ports import Queue, SuspectReplyError
from app.services.execution.call_rows import CallKey
from app.services.execution.retries import JobMustStopError
from app.services.execution.stop_signal import StopSignal
from app.services.execution.stopping import stop_error

log = structlog.get_logger(__name__)

QUIET_SECONDS = 600.0
"""Shortest time between two messages to a webhook about surplus replies of one connection."""
AGAIN_SECONDS = 1.0
"""Pause before another look at a job that is ending, a shard that is at work, or a database that is away."""
MOST_SUSPECT_REPLIES = 5
"""Number of suspect replies to one request, used or not. One more that was used pauses the job."""


async def report_surplus(
    connection: AsyncConnection, tenant: str, job_id: str, connections: Collection[str]
) -> None:
    """Write messages about servers that sent bytes that no request was waiting for."""
    for name in sorted(connections):
        data = {"id": name, "object": "connection"}
        await webhooks.note_event(
            connection, tenant, WebhookEvent.SURPLUS_REPLIES, job_id, data, quiet_seconds=QUIET_SECONDS
        )


async def ask_again(
    connection: AsyncConnection, claim: AnyClaim, suspects: Collection[CallKey]
) -> JobError | None:
    """Delete what was made of replies that may belong to other requests; the shard's next run asks for it again.

    The job shows the calls as failures. What prepares a persona is kept: others may have made something of it.

    Returns:
        Why the locked job must be paused; ``None`` if it may go on.
    """
    await fail_calls(connection, claim, suspects)
    if not isinstance(claim, Claim):
        return None
    places = [(key.run or 0, key.item or 0, key.is_about_text) for key in suspects]
    texts = {(run, item) for run, item, is_text in places if is_text}
    judged = {(run, item) for run, item, is_text in places if not is_text}
    log.warning("replies withdrawn", texts=len(texts), judged_texts=len(judged))
    await stored_rows.withdraw(connection, claim, texts, judged)
    await response_cache.forget_shard(connection, claim.shard_id)
    await reopen_shards(connection, claim.job_id, [claim.shard_id])
    calls = [key._asdict() for key in suspects]
    failures, model = await stored_rows.most_failures(connection, claim.shard_id, calls, SUSPECT_REPLY)
    if failures <= MOST_SUSPECT_REPLIES:
        return None
    words = f"{failures} replies to the same request may belong to other requests"
    return stop_error(JobMustStopError(SUSPECT_REPLY, words, model))


async def fail_calls(connection: AsyncConnection, claim: AnyClaim, suspects: Collection[CallKey]) -> None:
    """Show calls with suspect replies among the job's failures."""
    calls = [key._asdict() for key in suspects]
    await stored_rows.fail_calls(connection, claim.shard_id, calls, SuspectReplyError())


class LateSuspects:
    """Replies that become suspect after their shard has ended. One a process."""

    def __init__(self, engine: AsyncEngine, queue: Queue, window: int) -> None:
        self._engine = engine
        self._queue = queue
        self._window = window
        self._found: defaultdict[AnyClaim, dict[CallKey, str]] = defaultdict(dict)
        self._noted = asyncio.Event()

    def watch(self, claim: AnyClaim, stop: StopSignal) -> None:
        """Take note of a shard's replies that become suspect from now on."""

        def note(key: CallKey, connection: str) -> None:
            self._found[claim][key] = connection
            self._noted.set()

        stop.watch(note)

    async def run(self) -> None:
        """Withdraw what was made of them, until cancelled."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            found, self._found = self._found, defaultdict(dict)
            for claim, suspects in found.items():
                if not await self._withdrawn(claim, suspects):
                    self._found[claim] |= suspects
            if self._found:
                await asyncio.sleep(AGAIN_SECONDS)
                self._noted.set()

    async def _withdrawn(self, claim: AnyClaim, suspects: dict[CallKey, str]) -> bool:
        """Withdraw what was made of a shard's suspect replies; return whether nothing of it is left to do."""
        with structlog.contextvars.bound_contextvars(job=claim.job_id, shard=claim.shard_id):
            try:
                async with self._engine.begin() as connection:
                    status = await jobs.lock_job(connection, claim.job_id)
                    if status in ENDING or await shards.is_leased(connection, claim.shard_id):
                        return False
                    announced: list[int] = []
                    if status is not None:
                        announced = await self._withdraw(connection, claim, suspects, status)
                        await report_surplus(connection, claim.tenant, claim.job_id, set(suspects.values()))
                await self._queue.announce_shards(announced)
            except Exception as error:
                if is_away(error):
                    log.warning("suspect replies wait for the database", reason=reason(error))
                    return False
                log.exception("suspect replies not withdrawn")
        return True

    async def _withdraw(
        self, connection: AsyncConnection, claim: AnyClaim, suspects: dict[CallKey, str], status: JobStatus
    ) -> list[int]:
        """Return the shards to announce of a locked job, which asks again, also if it has completed.

        A failed or cancelled job, and one whose persona was prepared with the replies, only shows the calls as failures.
        """
        if not isinstance(claim, Claim) or status in {JobStatus.FAILED, JobStatus.CANCELLED}:
            await fail_calls(connection, claim, suspects)
            await refresh_usage(connection, claim.job_id)
            return []
        error = await ask_again(connection, claim, suspects)
        if status is JobStatus.COMPLETED:
            await jobs.forget_result(connection, claim.job_id)
            await jobs.move(connection, claim.job_id, leave=[status], to=JobStatus.QUEUED)
        if error is not None:
            await jobs.move(connection, claim.job_id, to=JobStatus.PAUSED, reason=error.code, error=error)
        if error is not None or status is JobStatus.PAUSED:
            return []
        return await shards.refill(connection, claim.job_id, self._window)
