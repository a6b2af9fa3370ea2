"""Imports reproduction bundles: in one transaction a job is written, its results are computed again, and compared with the bundle's."""

import asyncio
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import structlog
from pydantic import ValidationError
from pydantic_core import from_json, to_json
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError, StatementError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import bundles, jobs, listing
from app.db.jobs.bundles import RowWriter
from app.db.jobs.jobs import JobRow
from app.domain.errors import InvalidJobError
from app.domain.instruments.instrument import READER_VERSION
from app.domain.jobs.bundle import (
    JOB,
    RESULTS,
    SETS,
    SPECIFICATION,
    TABLES,
    BundleJob,
    with_secret,
)
from app.domain.jobs.bundle_reading import ReadAgain
from app.domain.jobs.bundle_rows import RowChecks, WrongRowError
from app.domain.jobs.contract import ImportedFrom
from app.domain.jobs.plan import cells_of, control_cells_of, count_calls
from app.domain.jobs.specification import JobSpec
from app.domain.results.contract import Results
from app.instruments.rules import RULES
from app.services.errors import NotFoundError
from app.services.identifiers import new_id
from app.services.job_context import JobContext, decode_spec
from app.services.jobs.listing import note_results
from app.services.results.bundle_file import BundleReader, told, wrong
from app.services.results.bundle_sets import write_sets
from app.services.results.compute import Computed, JobRows, read_rows, render_results

log = structlog.get_logger(__name__)

ROWS_AT_ONCE = 1_000
BYTES_AT_ONCE = 8 * 2**20
MOST_CELLS = 1_000_000
_ROUNDING = 1e-9
"""Sums of money: a database adds them up in any order."""


_OF_VALUES = (DataError, IntegrityError, ProgrammingError)
"""What a database says of values that its columns do not take; the last of a list for a number."""
_OF_THE_ROWS = (ArithmeticError, LookupError, TypeError, ValueError)
"""What reading rows fails by that do not fit their specification; a database that is away fails otherwise."""


class Imported(NamedTuple):
    """A job that was imported, and how many rows of a kind it has."""

    job: JobRow
    rows: Mapping[str, int]


async def import_bundle(
    engine: AsyncEngine, tenant: str, path: Path, *, max_planned_calls: int, secret: str
) -> Imported:
    """Writes a bundle's job, under its own id if no job here has that.

    Args:
        engine: The database.
        tenant: Whose job it becomes.
        path: The bundle.
        max_planned_calls: How many calls a job may have at most.
        secret: Of this installation's key words, for calls that are made when the job is retried here.

    Raises:
        InvalidJobError: If anything in it is wrong, or its results are not those of its rows; then nothing is written.
    """
    reader = await asyncio.to_thread(BundleReader, path)
    with closing(reader):
        bundle = await asyncio.to_thread(_Bundle.read, reader, path, max_planned_calls, secret)
        try:
            async with engine.begin() as connection:
                return await bundle.write(connection, tenant)
        except StatementError as error:
            if isinstance(error, DBAPIError) and not isinstance(error, _OF_VALUES):
                raise
            raise wrong(bundle.at, f"the database does not take it: {_words(error)}") from error


def _words(error: StatementError) -> str:
    return str(error.orig).partition("\n")[0][:300]


class _Bundle:
    """A bundle whose parts fit each other.

    Attributes:
        at: The file that is being written.
    """

    def __init__(
        self, reader: BundleReader, source: ImportedFrom, job: BundleJob, context: JobContext, spec: Any
    ) -> None:
        self._reader = reader
        self._source = source
        self._job = job
        self._context = context
        self._spec = spec
        self.at = JOB

    @classmethod
    def read(cls, reader: BundleReader, path: Path, max_planned_calls: int, secret: str) -> "_Bundle":
        """Checks all but the rows; blocks."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        header = reader.header
        job = reader.model(JOB, BundleJob)
        if not job.is_over:
            raise wrong(f"{JOB}/status", f"a job in a bundle is over, not {job.status}")
        encoded = reader.json(SPECIFICATION)
        spec = _specification(encoded, max_planned_calls)
        cells = cells_of(spec)
        context = JobContext(spec, cells, None, control_cells_of(spec, len(cells)))
        simulated = any(model.simulated for model in (*spec.models, *spec.called))
        if header.simulated != simulated:
            raise wrong("bundle.json/simulated", f"the specification says {str(simulated).lower()}")
        source = ImportedFrom(
            job=header.job, release=header.release, sha256=digest, imported_at=datetime.now(UTC)
        )
        return cls(reader, source, job, context, with_secret(encoded, secret))

    async def write(self, connection: AsyncConnection, tenant: str) -> Imported:
        """Writes all rows, and sees whether the results are those of the bundle."""
        await bundles.begin(connection)
        job_id = await self._write_job(connection, tenant)
        self.at = SETS
        await write_sets(connection, tenant, job_id, self._reader)
        rows = await self._write_rows(connection, tenant, job_id)
        row = await jobs.get_job(connection, tenant, job_id)
        if row is None:
            raise RuntimeError(f"{job_id} vanished inside its own transaction")
        self.at = RESULTS
        document = await asyncio.to_thread(self._reader.document, RESULTS)
        computed = await self._compute(connection, row, document)
        document = document.replace(_own(self._source.job), _own(job_id))
        document = await asyncio.to_thread(_in_own_words, document, computed.document)
        await jobs.store_result(connection, tenant, job_id, computed.completeness, document)
        await listing.note_parts(connection, tenant, job_id)
        await note_results(connection, tenant, job_id, computed.scores, computed.warnings)
        stored = await jobs.get_job(connection, tenant, job_id)
        if stored is None:
            raise NotFoundError(f"job {job_id} not found")
        return Imported(stored, rows)

    async def _write_job(self, connection: AsyncConnection, tenant: str) -> str:
        values = self._job.model_dump(mode="json") | {
            "tenant": tenant,
            "spec": self._spec,
            "simulated": any(
                model.simulated for model in (*self._context.spec.models, *self._context.spec.called)
            ),
            "imported_from": self._source.model_dump(mode="json"),
            "updated_at": self._source.imported_at.isoformat(),
            "finalize_failures": 0,
        }
        job_id = self._source.job
        while not await bundles.insert_job_row(connection, values | {"id": job_id}):
            job_id = new_id("job")  # some job has it, maybe another tenant's
        return job_id

    async def _write_rows(self, connection: AsyncConnection, tenant: str, job_id: str) -> dict[str, int]:
        """Writes the rows of all tables, so many at a time; how many each has."""
        context = self._context
        again = await asyncio.to_thread(self._read_again)
        checks = RowChecks(context.spec, (*context.cells, *context.control), again)
        writer = RowWriter(connection, tenant, job_id)
        counts = {}
        for table in bundles.ROWS:
            self.at = f"{TABLES}{table}.jsonl"
            rows = self._checked(table, self._reader.lines(self.at), checks)
            counts[table] = 0
            while some := await asyncio.to_thread(self._some, rows):
                try:
                    await writer.write(table, some)
                except LookupError as error:
                    raise wrong(self.at, "a row names a cell or a shard that there is not") from error
                counts[table] += len(some)
            if table == "cells":
                try:
                    checks.check_whole()
                except WrongRowError as error:
                    raise wrong(self.at, str(error)) from error
        await self._check_usage(connection, job_id)
        return counts

    async def _check_usage(self, connection: AsyncConnection, job_id: str) -> None:
        """Sees whether what the job's shards took is what their calls add up to."""
        unlike = await bundles.unlike_calls(connection, job_id)
        if unlike is not None:
            shard, stage, model = unlike
            why = f"shard {shard}, {stage}, {model}: not what the calls in calls.jsonl add up to"
            raise wrong(f"{TABLES}shard_usage.jsonl", why)

    def _read_again(self) -> ReadAgain:
        """Return what reads texts and replies again, as far as this release has the rules that read them."""
        used, known = self._context.spec.instrument, RULES.segmenter
        segmenter = known.load(used.segmenter) if used.segmenter in known.names else None
        reader = self._job.reader or used.replies
        return ReadAgain(self._context.spec, segmenter, replies=reader == READER_VERSION)

    def _some(self, rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
        """The next rows: fewer where they are long, so that memory holds few long ones."""
        some, most = [], self._reader.bytes_of_lines + BYTES_AT_ONCE
        for row in islice(rows, ROWS_AT_ONCE):
            some.append(row)
            if self._reader.bytes_of_lines >= most:
                break
        return some

    def _checked(
        self, table: str, lines: Iterator[tuple[int, dict[str, Any]]], checks: RowChecks
    ) -> Iterator[dict[str, Any]]:
        fields: Sequence[str] | None = None
        known = bundles.fields_of(table)
        for number, row in lines:
            if fields is None:
                fields = list(row)
                if unknown := sorted(set(fields) - known):
                    raise wrong(self.at, f"unknown fields: {', '.join(unknown)[:300]}", number)
            elif list(row) != fields:
                raise wrong(self.at, "must have the fields of the first line", number)
            try:
                checks.check(table, row)
            except WrongRowError as error:
                raise wrong(self.at, str(error), number) from error
            yield row

    async def _compute(self, connection: AsyncConnection, job: JobRow, document: str) -> Computed:
        """The results that follow from the rows.

        Raises:
            InvalidJobError: If they are not those of the bundle.
        """
        try:
            told_results = await asyncio.to_thread(Results.read, document)
        except ValidationError as error:
            raise told(RESULTS, error) from error
        if told_results.job != self._source.job:
            raise wrong(f"{RESULTS}/job", f"must be {self._source.job}, as in bundle.json")
        try:
            rows = await read_rows(connection, job, self._context)
        except _OF_THE_ROWS as error:
            raise _not_computed(error) from error
        rows = replace(rows, batches=told_results.manifest.get("batches", []))
        named = replace(job, name=told_results.name)  # as it was when it ended
        computed = await asyncio.to_thread(_render, named, self._context, rows)
        own = computed.document.replace(_own(job.id), _own(self._source.job))
        difference = await asyncio.to_thread(first_difference, document, own)
        if difference is not None:
            place, why = difference
            raise wrong(RESULTS + place, f"not what the rows give: {why}")
        return computed


def _own(job_id: str) -> str:
    """The part of a job's id that its responses' ids have, too."""
    return job_id.removeprefix("job_")


def _specification(encoded: Any, max_planned_calls: int) -> JobSpec:
    """A specification that is not too large to be looked at."""
    try:
        spec = decode_spec(encoded)
        tasks = len(spec.tasks) + (0 if spec.gym is None else len(spec.gym.tasks))
        cells = len(spec.personas) * len(spec.models) * max(1, tasks)
        calls = count_calls(spec)
    except ValidationError as error:
        raise told(SPECIFICATION, error) from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise wrong(SPECIFICATION, f"does not fit together: {error}") from error
    if cells > MOST_CELLS or calls > max_planned_calls:
        why = f"{cells:,} cells and {calls:,} calls; at most {MOST_CELLS:,} and {max_planned_calls:,}"
        raise wrong(SPECIFICATION, why)
    return spec


def _render(job: JobRow, context: JobContext, rows: JobRows) -> Computed:
    try:
        return render_results(job, context, rows)
    except Exception as error:
        raise _not_computed(error) from error


def _not_computed(error: Exception) -> InvalidJobError:
    log.warning("results of a bundle not computed", exc_info=error)
    return wrong(RESULTS, "can't be computed from the rows; the service's log has the error")


_HERE = (("computed_at",), ("manifest", "versions"), ("manifest", "thoughts"))
"""Fields that say when and by which code results were computed; the rows do not tell."""
_DEVIATIONS = ("manifest", "deviations")
"""What each release says in its own words."""
_SUMS = ("/usage/", "/cost/", "/reuse/")


def _in_own_words(document: str, own: str) -> str:
    """The bundle's results, with the deviations as this release words them: nobody has checked what a bundle says."""
    found = from_json(document)
    words = from_json(own)["manifest"]["deviations"]
    if found["manifest"].get("deviations") == words:
        return document
    found["manifest"]["deviations"] = words
    return to_json(found).decode()


def first_difference(document: str, own: str) -> tuple[str, str] | None:
    """Where two results differ first, and how; ``None`` where all of the first are in the second, which later code may add fields to.

    Args:
        document: Those of the bundle.
        own: Those that were computed here.
    """
    one, other = from_json(document), from_json(own)
    for path in (*_HERE, _DEVIATIONS):
        _forget(one, path)
    return _differ(one, other, "")


def _forget(results: dict[str, Any], path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        results = results[name]
    results.pop(path[-1], None)


def _differ(one: Any, other: Any, path: str) -> tuple[str, str] | None:
    if isinstance(one, dict) and isinstance(other, dict):
        parts = [(one[name], other.get(name, _MISSING), f"{path}/{name}") for name in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = [(a, b, f"{path}/{n}") for n, (a, b) in enumerate(zip(one, other, strict=True))]
    elif one == other or (path.startswith(_SUMS) and _close(one, other)):
        return None
    else:
        return path, f"{_short(other)}, not {_short(one)}"
    return next(filter(None, (_differ(*part) for part in parts)), None)


_MISSING = object()


def _close(one: Any, other: Any) -> bool:
    numbers = isinstance(one, float) and isinstance(other, float)
    return numbers and math.isclose(one, other, rel_tol=_ROUNDING)


def _short(value: Any) -> str:
    return "missing" if value is _MISSING else str(to_json(value)[:200].decode(errors="replace"))
