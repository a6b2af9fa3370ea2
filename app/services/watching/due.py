"""What is due: each due time gets one run, or is told as skipped or missed, whatever crashes and however many sweepers there are.

A schedule's row is locked while its due times become rows, and a run is one for its schedule and due time.
"""

from datetime import datetime, timedelta
from itertools import takewhile

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.health import is_away
from app.db.watching import schedule_runs, schedules
from app.db.watching.schedules import ScheduleRow
from app.db.webhooks import webhooks
from app.domain.watching.cron import due_times
from app.domain.webhooks.webhook import WebhookEvent
from app.services.identifiers import new_id

log = structlog.get_logger(__name__)

PUT_OFF = timedelta(hours=1)
"""After so long a schedule is looked at again that could not be, such as one whose time zone this machine does not know: others go on.
What was due meanwhile is told as missed."""
LATEST = timedelta(hours=6)
"""So much later a run still begins, if nothing swept when it was due."""
MOST_COUNTED = 10_000
"""Due times that are counted after a long rest; a year's of an hourly schedule."""
LEAST_USD = 1e-6
OVERLAP = "the previous run has not ended"
USED_UP = "the schedule's budget is used up"
KEY_ENDED = "the API key of the schedule was revoked or has expired"
NOT_SWEPT = "the service was not running"
PUT_OFF_BY_ERROR = "an internal error put the schedule off"
KEPT_WHOLE = 5000
"""Runs of a schedule that are all kept; of older ones the last one of each day."""


async def begin_due(engine: AsyncEngine) -> bool:
    """Makes the run of the schedule that is due for longest; whether there was one."""
    async with engine.begin() as connection:
        found = await schedules.lock_due(connection)
        if found is None:
            return False
        schedule, now = found
        try:
            async with connection.begin_nested():
                await _begin(connection, schedule, now)
        except Exception as error:
            if is_away(error):
                raise
            log.exception("schedule not run; trying again in an hour", schedule=schedule.id)
            await schedules.put_off(connection, schedule, now + PUT_OFF)
    return True


async def _begin(connection: AsyncConnection, schedule: ScheduleRow, now: datetime) -> None:
    """Writes what becomes of a locked schedule's due times up to now, and says when the next one is."""
    if schedule.next_due is None:
        return
    times = due_times(schedule.cron, schedule.time_zone, schedule.next_due)
    passed = [schedule.next_due]
    for _, due in zip(range(MOST_COUNTED), takewhile(lambda due: due <= now, times), strict=False):
        passed.append(due)
    following = next(due_times(schedule.cron, schedule.time_zone, now), None)
    why_missed = NOT_SWEPT if schedule.put_off_until is None else PUT_OFF_BY_ERROR
    if now - passed[-1] > LATEST:
        await _note(connection, schedule, passed[-1], "missed", why_missed, missed=len(passed))
        await schedules.set_next_due(connection, schedule, following)
        return
    if len(passed) > 1:
        await _note(connection, schedule, passed[-2], "missed", why_missed, missed=len(passed) - 1)
    paused = await _why_paused(connection, schedule)
    if paused is not None:
        reason, why = paused
        await _note(connection, schedule, passed[-1], "skipped", why)
        await schedules.set_next_due(connection, schedule, None, reason)
        return
    if await schedule_runs.is_active(connection, schedule.id):
        await _note(connection, schedule, passed[-1], "skipped", OVERLAP)
    else:
        await _note(connection, schedule, passed[-1], "due", None)
    await schedules.set_next_due(connection, schedule, following)


async def _why_paused(connection: AsyncConnection, schedule: ScheduleRow) -> tuple[str, str] | None:
    """Why a schedule is not run any more; ``None`` if it is."""
    if schedule.key_id is not None and await schedules.has_key_ended(
        connection, schedule.tenant, schedule.key_id
    ):
        return "key_ended", KEY_ENDED
    if schedule.total_usd is not None:
        spent = await schedules.spent(connection, schedule.tenant, [schedule.id])
        if schedule.total_usd - spent[schedule.id] < LEAST_USD:
            return "budget_used_up", USED_UP
    return None


async def _note(
    connection: AsyncConnection,
    schedule: ScheduleRow,
    due: datetime,
    state: str,
    reason: str | None,
    *,
    missed: int = 0,
) -> None:
    """Writes a run, and tells of one that does not take place."""
    run_id = new_id("srun")
    values = {"id": run_id, "tenant": schedule.tenant, "schedule_id": schedule.id, "due": due}
    ended = None if state == "due" else due
    values |= {"state": state, "reason": reason, "missed": missed, "ended_at": ended}
    written = await schedule_runs.insert_run(connection, values)
    await schedule_runs.thin(connection, schedule.tenant, schedule.id, KEPT_WHOLE)
    if written and state != "due":
        event = WebhookEvent.RUN_MISSED if state == "missed" else WebhookEvent.RUN_SKIPPED
        data = told(schedule, run_id, due) | {"reason": reason, "missed": missed}
        await webhooks.note_event(connection, schedule.tenant, event, None, data)


def told(schedule: ScheduleRow, run_id: str, due: datetime) -> dict[str, object]:
    """What every message about a run has."""
    return {
        "id": schedule.id,
        "object": "schedule",
        "name": schedule.name,
        "run": run_id,
        "due": due.isoformat().replace("+00:00", "Z"),
        "links": {"self": f"/v1/schedules/{schedule.id}", "runs": f"/v1/schedules/{schedule.id}/runs"},
    }
