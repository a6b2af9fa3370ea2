"""Resumes jobs paused by a provider's outage once its server is reachable again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import single_statements
from app.db.jobs import jobs
from app.ports import ModelCallError, ProviderProbe, Queue
from app.services.execution.call_outcomes import AWAY, outcome_of
from app.services.execution.retries import PROVIDER_UNREACHABLE
from app.services.jobs.control import queue_again
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

PROBE_SECONDS = 30.0
"""How often the servers are tried of which jobs wait."""
FIRST_WAIT_SECONDS = 60.0
"""Pause before the second resumption without an answered call between; each further one takes four times as long."""
MOST_RESUMPTIONS = 6
"""Resumptions without an answered call between, after which the job stays paused: its server answers probes but no calls."""


@contextlib.asynccontextmanager
async def resuming(
    engine: AsyncEngine, queue: Queue, probe: ProviderProbe, window: int
) -> AsyncIterator[None]:
    """Resumes such jobs in the background. Several processes may: a job is resumed once."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(PROBE_SECONDS)
            try:
                await resume_reachable(engine, queue, probe, window)
            except Exception:
                log.exception("jobs of unreachable providers not looked after; trying again")

    async with vital_tasks(resumption=repeat()):
        yield


async def resume_reachable(engine: AsyncEngine, queue: Queue, probe: ProviderProbe, window: int) -> list[str]:
    """Try each server once of which jobs wait that are due, resume those whose server answers, and return their ids."""
    async with single_statements(engine) as connection:
        found = await jobs.paused_jobs(connection, PROVIDER_UNREACHABLE)
    paused = [job for job in found if _is_due(job)]
    servers = list({_server(job) for job in paused})
    # One that lets us wait keeps nobody from the others.
    answers = await asyncio.gather(*(_is_reached(probe, *server) for server in servers))
    reached = {server for server, answered in zip(servers, answers, strict=True) if answered}
    resumed: list[str] = []
    for job in paused:
        if _server(job) in reached and await _resume(engine, queue, job.id, window):
            log.info("job resumed", job=job.id, connection=_server(job)[0])
            resumed.append(job.id)
    return resumed


def _is_due(job: jobs.PausedJob) -> bool:
    """Return whether to resume the job, based on its failed resumptions."""
    if job.resumptions == 0:
        return True
    wait = FIRST_WAIT_SECONDS * 4 ** (job.resumptions - 1)
    return job.resumptions < MOST_RESUMPTIONS and job.paused_seconds >= wait


def _server(job: jobs.PausedJob) -> tuple[str, str]:
    """The connection that a job waits for, and whose it is."""
    return str((job.error or {}).get("model", "")).partition("/")[0], job.tenant


async def _is_reached(probe: ProviderProbe, connection: str, tenant: str) -> bool:
    """Whether a server answers, be it with an error: the job's own calls say more of that."""
    try:
        await probe.probe(connection, tenant)
    except ModelCallError as error:
        return outcome_of(error) not in AWAY
    except Exception:
        log.exception("server not tried; trying again", connection=connection)
        return False
    return True


async def _resume(engine: AsyncEngine, queue: Queue, job_id: str, window: int) -> bool:
    async with engine.begin() as connection:
        # Somebody may have paused, resumed or cancelled it meanwhile.
        paused = await jobs.paused_jobs(connection, PROVIDER_UNREACHABLE, job_id)
        if not paused:
            return False
        announced = await queue_again(connection, job_id, window)
        await jobs.note_resumptions(connection, job_id, paused[0].resumptions + 1)
    await queue.announce_shards(announced)
    return True
