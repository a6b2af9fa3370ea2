"""The sweeper's part in schedules: every few seconds it looks what is due, and takes runs further."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.health import is_away
from app.db.reasons import reason
from app.services.watching.due import begin_due
from app.services.watching.runs import Submitting, advance
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

LOOK_SECONDS = 5.0


@contextlib.asynccontextmanager
async def running_schedules(engine: AsyncEngine, deps: Submitting) -> AsyncIterator[None]:
    """Within, schedules are run."""
    async with vital_tasks(schedules=_keep_running(engine, deps)):
        yield


async def run_due(engine: AsyncEngine, deps: Submitting) -> None:
    """One look at all tenants' schedules. Several at once do no harm."""
    while await begin_due(engine):
        pass
    await advance(engine, deps)


async def _keep_running(engine: AsyncEngine, deps: Submitting) -> None:
    while True:
        try:
            await run_due(engine, deps)
        except Exception as error:
            if is_away(error):
                log.warning("looking for due schedules failed; trying again", reason=reason(error))
            else:
                log.exception("looking for due schedules failed; trying again")
        await asyncio.sleep(LOOK_SECONDS)
