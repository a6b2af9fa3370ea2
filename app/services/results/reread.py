"""Reads a finished job's stored replies with the current rules, shows what changes, and stores it on request."""

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import clock
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.db.jobs.retries import count_reopenings
from app.db.results import stored_replies
from app.domain.instruments.instrument import READER_VERSION
from app.domain.jobs.contract import JobError
from app.domain.jobs.plan import Cell
from app.domain.jobs.reread import Kind, Reread, RereadChange, RereadExample, RereadIn
from app.domain.jobs.status import JobStatus
from app.domain.jobs.stored_replies import Reading, StoredReplies
from app.domain.judging.prompt_injection import Suspicion, suspicion
from app.domain.judging.verdict import VerdictStatus
from app.ports import Queue
from app.services.errors import NotFoundError, WrongStateError
from app.services.identifiers import response_id
from app.services.job_context import JobContext, JobContexts
from app.services.long_texts import on_a_thread
from app.services.results.cell_rows import TURN_SECONDS
from app.services.results.finalize import NO_SCORE

Json = dict[str, Any]

ROWS_AT_ONCE = 1_000
_KINDS: dict[str, Kind] = {"verdicts": "sentences", "second_verdicts": "checks", "grades": "grades"}
_REFUSALS = frozenset({VerdictStatus.REFUSED, VerdictStatus.FILTERED})


class _Change(NamedTuple):
    """A row whose replies read otherwise, and the new values of its columns."""

    table: str
    cell: Cell
    row: Json
    new: Json


class _Found:
    """What changes: counts with some examples, and the rows to store.

    Attributes:
        replies: Rows that were read.
        rows: The changed rows by table, with their keys and new values alone.
    """

    def __init__(self, context: JobContext, job_id: str, examples: int) -> None:
        self._judges, self._job_id, self._examples = context.spec.judges, job_id, examples
        self._changes: dict[tuple[str, str, str], RereadChange] = {}
        self.replies = 0
        self.rows: dict[str, list[Json]] = {table: [] for table in _KINDS}

    @property
    def changes(self) -> list[RereadChange]:
        """The changes by kind, the most frequent first."""
        kinds = list(_KINDS.values())
        return sorted(self._changes.values(), key=lambda each: (kinds.index(each.of), -each.count))

    def add(self, change: _Change) -> None:
        """Count a change."""
        table, row, new = change.table, change.row, change.new
        self.rows[table].append({name: row[name] for name in stored_replies.TABLES[table].key_columns} | new)
        if (new["status"], new["score"]) == (row["status"], row["score"]):
            return  # only the reason why the first reply can't be read
        before, after = VerdictStatus(row["status"]), VerdictStatus(new["status"])
        same = self._changes.get((table, before, after))
        if same is None:
            same = RereadChange(of=_KINDS[table], before=before, after=after, count=0, examples=[])
            self._changes[table, before, after] = same
        same.count += 1
        if len(same.examples) < self._examples:
            same.examples.append(self._example(change))

    def _example(self, change: _Change) -> RereadExample:
        row, judges = change.row, self._judges
        graded = change.table == "grades"
        return RereadExample(
            response=response_id(self._job_id, change.cell.ordinal, row["run"], row["item"]),
            unit=None if graded else row["unit"],
            judge=judges[row["judge"] % len(judges)].label,
            dimension=None if graded else change.cell.dimensions[row["trait"]].id,
            text=row["text"] or "",
            reply=row["raw"] or "",
            repair_reply=row["repair_raw"],
            score_before=row["score"],
            score_after=change.new["score"],
        )


async def reread_job(
    engine: AsyncEngine, queue: Queue, contexts: JobContexts, tenant: str, job_id: str, wanted: RereadIn
) -> Reread:
    """Read a finished job's stored replies again, without calls.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job has not ended, has changed in between, or has replies that can't be read here.
    """
    async with engine.connect() as connection:
        job = await _ended(connection, tenant, job_id)
        reopenings = await count_reopenings(connection, tenant, job_id)
    context = await contexts.get(tenant, job_id)
    if job.imported_from is not None and context.spec.hardening is not None:
        raise WrongStateError(
            "the job was imported and its judges' replies begin with key words of the installation that it comes"
            " from: read them again there",
            job.status,
        )
    found = _Found(context, job_id, wanted.examples)
    async for table, cell, rows in _stored(engine, job, context):
        found.replies += len(rows)
        for change in await on_a_thread(tenant, partial(_changes, context, table, cell, rows)):
            found.add(change)
    before = job.reader or context.spec.instrument.replies
    if wanted.apply and (any(found.rows.values()) or before != READER_VERSION):
        async with engine.begin() as connection:
            await _apply(connection, job, reopenings, found.rows)
        await queue.announce_finalize(job_id)
    changes = found.changes
    return Reread(
        job=job_id,
        reader_before=before,
        reader=READER_VERSION,
        replies=found.replies,
        changed=sum(each.count for each in changes),
        changes=changes,
        applied=wanted.apply,
    )


async def _ended(connection: AsyncConnection, tenant: str, job_id: str) -> JobRow:
    job = await jobs.get_job(connection, tenant, job_id)
    if job is None:
        raise NotFoundError(f"job {job_id} not found")
    if not job.status.is_terminal:
        message = f"a job that is {job.status} can't be read again; wait until it has ended, or cancel it"
        raise WrongStateError(message, job.status)
    return job


async def _stored(
    engine: AsyncEngine, job: JobRow, context: JobContext
) -> AsyncIterator[tuple[str, Cell, list[Json]]]:
    """Yield the rows with a reply, table by table and cell by cell."""
    spec = context.spec
    tables = ["verdicts"]
    if spec.grouping is not None or spec.order_check is not None:
        tables.append("second_verdicts")
    if spec.gym is not None:
        tables.append("grades")
    async with engine.connect() as connection:
        ids = await stored_replies.cell_ids(connection, job.tenant, job.id)
    for table in tables:
        for ordinal, cell_id in ids.items():
            async with engine.connect() as connection:
                rows = await stored_replies.replies_of_cell(connection, job.tenant, table, cell_id)
            if rows:
                yield table, context.cell(ordinal), rows


def _changes(context: JobContext, table: str, cell: Cell, rows: Sequence[Json]) -> list[_Change]:
    """Return the rows whose replies read otherwise; CPU only."""
    stored, found = StoredReplies(context.spec), []
    for n, row in enumerate(rows):
        if table == "grades":
            reading = stored.grade(row, row["text"])
        elif table == "verdicts":
            reading = stored.verdict(row, cell.dimensions[row["trait"]], row["text"])
        else:
            place = row | {"cell": cell.ordinal}
            reading = stored.check(place, cell.dimensions[row["trait"]], row["text"])
        new = None if reading is None else _values(row, reading)
        if new is not None and any(row[name] != value for name, value in new.items()):
            found.append(_Change(table, cell, row, new))
        if n % 100 == 0:
            clock.sleep(TURN_SECONDS)
    return found


def _values(row: Json, reading: Reading) -> Json:
    """Return the columns that follow from a reading."""
    verdict = reading.verdict
    new = {
        "status": verdict.status.value,
        "score": verdict.score,
        "unread": None if verdict.unread is None else verdict.unread.value,
    }
    if "suspicion" in row:
        new["suspicion"] = row["suspicion"]
    if "suspicion" in row and row.get("group_size", 1) == 1:  # a part of a reply lacks the key word
        of_text = row["suspicion"] in {Suspicion.TEXT, Suspicion.BOTH}
        swayed = reading.key_missing and verdict.status not in _REFUSALS
        new["suspicion"] = suspicion(of_text=of_text, of_reply=swayed)
    return new


async def _apply(
    connection: AsyncConnection, job: JobRow, reopenings: int, changed: Mapping[str, Sequence[Json]]
) -> None:
    """Replace the verdicts and hand the job to finalization; all or nothing."""
    await jobs.lock_job(connection, job.id, tenant=job.tenant)
    now = await _ended(connection, job.tenant, job.id)
    if await count_reopenings(connection, job.tenant, job.id) != reopenings:
        raise WrongStateError("the job has changed while its replies were read: read them again", now.status)
    for table, rows in changed.items():
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            await stored_replies.replace_verdicts(connection, job.tenant, table, some)
    await stored_replies.note_reread(connection, job.tenant, job.id, READER_VERSION)
    await jobs.forget_result(connection, job.id)
    error = None if now.error is None else JobError.model_validate(now.error)
    without_score = error is not None and error.code == NO_SCORE  # finalization finds out anew
    cancelled = now.status is JobStatus.CANCELLED
    await jobs.move(
        connection,
        job.id,
        leave=[now.status],
        to=JobStatus.CANCELLING if cancelled else JobStatus.FINALIZING,
        reason=None if without_score else now.status_reason,
        error=None if without_score else error,
        tenant=job.tenant,
    )
