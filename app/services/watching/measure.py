"""A run's figures and what they say beside those of the runs before it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs import jobs
from app.db.watching import schedule_runs
from app.db.watching.schedule_runs import RunRow
from app.db.watching.schedules import ScheduleRow
from app.domain.content_hash import hash_of
from app.domain.results.contract import Results
from app.domain.watching.attribution import (
    Cause,
    Drift,
    Measured,
    References,
    RunLimits,
    newest_drift,
    next_limits,
    references_after,
)
from app.domain.watching.cron import runs_a_year
from app.domain.watching.drift import two_sided
from app.domain.watching.figure import Watched, by_persona, figure_in, figure_of, resolution_of

REMEMBERED_RUNS = 1000
"""Runs that a new one is compared with, at most."""
_CI = 0.05
NO_LIMITS = RunLimits()


@dataclass(frozen=True, slots=True)
class Measurement:
    """What is kept of a run.

    Attributes:
        watched: The watched figure; ``None`` if the job has none.
        reason: Why it has none, or why it was not compared.
        design: Hash of the job's specification.
        anchor: The anchors' figure.
        anchors: Its values by persona.
        limits: What the figures were held against.
        alarms: Changes, in the form in which they are kept.
    """

    watched: Watched | None
    reason: str | None = None
    design: str | None = None
    anchor: Watched | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)
    limits: RunLimits = NO_LIMITS
    alarms: Sequence[dict[str, Any]] = ()

    def columns(self) -> dict[str, Any]:
        """As columns of the run's row."""
        low, high = self.limits.value or (None, None)
        anchor_low, anchor_high = self.limits.anchor or (None, None)
        value, anchor = self.watched, self.anchor
        counts = ("n", "left_out", "coverage")
        return {
            "value": None if value is None else value.value,
            **{name: None if value is None else getattr(value, name) for name in counts},
            "reason": self.reason,
            "design": self.design,
            "anchor": None if anchor is None else anchor.value,
            **{f"anchor_{name}": None if anchor is None else getattr(anchor, name) for name in counts},
            "anchors": dict(self.anchors) or None,
            "low": low,
            "high": high,
            "anchor_low": anchor_low,
            "anchor_high": anchor_high,
            "alarms": list(self.alarms),
        }


async def measure(
    connection: AsyncConnection, schedule: ScheduleRow, run: RunRow, job_id: str
) -> Measurement:
    """Reads the figures of a run's jobs that have ended, and compares them with the runs of the same design before it."""
    figure = figure_of(schedule.figure)
    results = await _results(connection, run.tenant, job_id)
    if results is None:
        return Measurement(None, "the job has no results")
    watched = figure_in(results, figure)
    if isinstance(watched, str):
        return Measurement(None, watched)
    design = await _design(connection, run.tenant, job_id)
    anchor, anchors = None, dict[str, float]()
    if schedule.anchors is not None:
        frozen = await _results(connection, run.tenant, run.anchor_job_id)
        found = None if frozen is None else figure_in(frozen, figure, anchors=True)
        if frozen is None or not isinstance(found, Watched):
            return Measurement(watched, "the anchors have no value, so the run is not compared", design)
        anchor, anchors = found, by_persona(frozen, figure)
    own = Measured(watched.value, None if anchor is None else anchor.value, anchors)
    rows = await schedule_runs.measured_runs(connection, run.tenant, schedule.id, design, REMEMBERED_RUNS)
    rows = [row for row in rows if (row.anchor is None) == (anchor is None)]
    before = [_measured(row) for row in rows]
    since, floor = _references(rows), resolution_of(results, figure)
    a_year = runs_a_year(schedule.cron)
    drifts = newest_drift([*before, own], since, a_year, floor)
    dues = [*(row.due for row in rows), run.due]
    return Measurement(
        watched,
        None,
        design,
        anchor,
        anchors,
        next_limits(before, since, a_year, floor, own.anchor),
        [_alarm(drift, dues[drift.change.first].isoformat()) for drift in drifts],
    )


def _measured(row: RunRow) -> Measured:
    return Measured(row.value or 0.0, row.anchor, row.anchors or {})


async def _results(connection: AsyncConnection, tenant: str, job_id: str | None) -> Results | None:
    document = None if job_id is None else await jobs.stored_result(connection, tenant, job_id)
    return None if document is None else await asyncio.to_thread(Results.read, document)


async def _design(connection: AsyncConnection, tenant: str, job_id: str) -> str:
    """A hash of what the job does. The key word of hardened judging is of this process; whatever it is, it does the same."""
    spec = await jobs.get_spec(connection, tenant, job_id) or {}
    hardening = spec.get("hardening")
    if isinstance(hardening, dict):
        spec = {**spec, "hardening": {name: hardening[name] for name in hardening if name != "secret"}}
    return hash_of(spec)


def _references(rows: Sequence[RunRow]) -> References:
    """From which of these runs on each series is compared: from its last change."""
    places = {row.due.isoformat(): n for n, row in enumerate(rows)}
    since = References()
    for row in rows:
        for alarm in row.alarms:
            since = references_after(since, Cause(alarm["cause"]), places.get(alarm["since"], 0))
    return since


def _alarm(drift: Drift, since: str) -> dict[str, Any]:
    change = drift.change
    half = two_sided(change.degrees, _CI) * change.error
    return {
        "cause": drift.cause.value,
        "since": since,
        "before": change.before,
        "after": change.after,
        "runs_before": change.runs_before,
        "runs_after": change.runs_after,
        "shift": change.shift,
        "ci95": [change.shift - half, change.shift + half],
    }
