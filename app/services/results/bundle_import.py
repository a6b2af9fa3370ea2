"""Imports reproduction bundles: in one transaction a job is written, its results are computed again, and compared with the bundle's."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, NamedTuple

import structlog
from pydantic_core import from_json
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError, StatementError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import clock
from app.db.health import exceeds_limit
from app.db.jobs import budgets, bundles, jobs, listing
from app.db.jobs.bundles import RowWriter
from app.db.jobs.jobs import JobRow
from app.db.sets import sets
from app.domain.errors import InvalidJobError
from app.domain.jobs.budget import Budget
from app.domain.jobs.bundle import JOB, RESULTS, ROWS, SETS, TABLES, with_secret
from app.domain.jobs.contract import ImportedFrom
from app.domain.jobs.plan import cells_of, control_cells_of
from app.domain.jobs.specification import decode_spec
from app.readers.pool import LARGE, ReaderPool, Source, twice
from app.services.errors import NotFoundError
from app.services.identifiers import new_id
from app.services.job_context import JobContext
from app.services.jobs.listing import note_results
from app.services.keys.tenant_limits import payers
from app.services.results.bundle_file import wrong
from app.services.results.bundle_reader import read_bundle
from app.services.results.bundle_sets import write_set
from app.services.results.compute import Computed, JobRows, read_rows, render_results

log = structlog.get_logger(__name__)

_OF_VALUES = (DataError, IntegrityError, ProgrammingError)
"""What a database says of values that its columns do not take; the last of a list for a number."""
_OF_THE_ROWS = (ArithmeticError, LookupError, TypeError, ValueError)
"""What reading rows fails by that do not fit their specification; a database that is away fails otherwise."""


class Imported(NamedTuple):
    """A job that was imported, and how many rows of a kind it has."""

    job: JobRow
    rows: Mapping[str, int]


async def import_bundle(
    engine: AsyncEngine,
    readers: ReaderPool,
    tenant: str,
    file: Source,
    sha256: str,
    *,
    max_planned_calls: int,
    secret: str,
    capped_key: str | None = None,
) -> Imported:
    """Write a bundle's job under a new id.

    Args:
        engine: The database.
        readers: Child processes that read files.
        tenant: Whose job it becomes.
        file: The bundle.
        sha256: Its digest.
        capped_key: The API key that imports it, if it has a spending cap: what the job spends here counts against it.
        max_planned_calls: How many calls a job may have at most.
        secret: Of this installation's key words, for calls that are made when the job is retried here.

    Raises:
        InvalidJobError: If anything in it is wrong, or its results are not those of its rows; then nothing is written.
    """

    async def once() -> Imported:
        fields = bundles.fields_of_rows()
        async with aclosing(
            readers.run(tenant, file, read_bundle, max_planned_calls, fields, kind=LARGE)
        ) as parts:
            bundle = _Bundle(parts, sha256, secret)
            try:
                async with engine.begin() as connection:
                    return await bundle.write(connection, tenant, capped_key)
            except StatementError as error:
                of_values = isinstance(error, _OF_VALUES) or exceeds_limit(error.orig)
                if isinstance(error, DBAPIError) and not of_values:
                    raise
                raise wrong(bundle.at, f"the database does not take it: {_words(error)}") from error

    return await twice(once)


def _words(error: StatementError) -> str:
    return str(error.orig).partition("\n")[0][:300]


class _Bundle:
    """A bundle as its reader gives it part by part.

    Attributes:
        at: The file that is being written.
    """

    def __init__(self, parts: AsyncGenerator[bytes, bytes | None], sha256: str, secret: str) -> None:
        self._parts = parts
        self._sha256 = sha256
        self._secret = secret
        self.at = JOB

    async def _next(self, answer: bytes | None = None) -> Any:
        """Return the next part's content; `at` names its file."""
        self.at, content = await asyncio.to_thread(from_json, await self._parts.asend(answer))
        return content

    async def write(self, connection: AsyncConnection, tenant: str, capped_key: str | None) -> Imported:
        """Write all parts, and see whether the results are those of the bundle."""
        await bundles.begin(connection)
        head = await self._next()
        source = ImportedFrom(
            job=head["job"], release=head["release"], sha256=self._sha256, imported_at=clock.now()
        )
        spec = await asyncio.to_thread(decode_spec, head["spec"])
        cells = await asyncio.to_thread(cells_of, spec)
        context = JobContext(spec, cells, None, control_cells_of(spec, len(cells)))
        job_id = await _write_job(connection, tenant, head, source, context, self._secret)
        rows, fields = await self._write_rows(connection, tenant, job_id)
        row = await jobs.get_job(connection, tenant, job_id)
        if row is None:
            raise RuntimeError(f"{job_id} vanished inside its own transaction")
        computed = await _compute(connection, row, context, fields)
        own = computed.document.replace(_own(job_id), _own(source.job))
        document = (await self._next(own.encode())).replace(_own(source.job), _own(job_id))
        await jobs.store_result(connection, tenant, job_id, computed.completeness, document)
        await listing.note_parts(connection, tenant, job_id)
        await note_results(connection, tenant, job_id, computed.scores, computed.warnings)
        await _write_budget(connection, tenant, job_id, Budget(**head["limits"]), capped_key)
        stored = await jobs.get_job(connection, tenant, job_id)
        if stored is None:
            raise NotFoundError(f"job {job_id} not found")
        return Imported(stored, rows)

    async def _write_rows(
        self, connection: AsyncConnection, tenant: str, job_id: str
    ) -> tuple[Mapping[str, int], Mapping[str, Any]]:
        """Write sets and rows; return how many rows each table has, and the results' own fields, which follow."""
        writer, counts, named = RowWriter(connection, tenant, job_id), dict.fromkeys(ROWS, 0), []
        while (content := await self._next()) is not None and self.at != RESULTS:
            if self.at == SETS:
                named += await write_set(connection, tenant, job_id, content)
                continue
            table = self.at.removeprefix(TABLES).removesuffix(".jsonl")
            try:
                await writer.write(table, content)
            except LookupError as error:
                raise wrong(self.at, "a row names a cell or a shard that there is not") from error
            counts[table] += len(content)
        await sets.note_named(connection, tenant, job_id, named)
        await _check_usage(connection, job_id)
        return counts, content


async def _write_job(
    connection: AsyncConnection,
    tenant: str,
    head: Mapping[str, Any],
    source: ImportedFrom,
    context: JobContext,
    secret: str,
) -> str:
    job_id = new_id("job")
    values = head["values"] | {
        "id": job_id,
        "tenant": tenant,
        "spec": with_secret(head["spec"], secret),
        "simulated": any(model.simulated for model in (*context.spec.models, *context.spec.called)),
        "imported_from": source.model_dump(mode="json"),
        "updated_at": source.imported_at.isoformat(),
        "finalize_failures": 0,
    }
    await bundles.insert_job_row(connection, values)
    return job_id


async def _write_budget(
    connection: AsyncConnection, tenant: str, job_id: str, limits: Budget, capped_key: str | None
) -> None:
    """Restore the job's budget. A job without one gets an account too, so that limits can be set before a retry."""
    payer = await payers(connection, tenant, capped_key)
    await budgets.insert_budget(connection, tenant, job_id, limits, payer)
    await budgets.count_recorded(connection, job_id)


async def _check_usage(connection: AsyncConnection, job_id: str) -> None:
    """Check that the use of the job's shards is the sum of their calls."""
    unlike = await bundles.unlike_calls(connection, job_id)
    if unlike is not None:
        shard, stage, model = unlike
        why = f"shard {shard}, {stage}, {model}: not what the calls in calls.jsonl add up to"
        raise wrong(f"{TABLES}shard_usage.jsonl", why)


async def _compute(
    connection: AsyncConnection, job: JobRow, context: JobContext, fields: Mapping[str, Any]
) -> Computed:
    """Return the results that follow from the rows.

    Raises:
        InvalidJobError: If there are none.
    """
    try:
        rows = await read_rows(connection, job, context)
    except _OF_THE_ROWS as error:
        raise _not_computed(error) from error
    rows = replace(rows, batches=fields["batches"])
    named = replace(job, name=fields["name"])  # as it was when it ended
    return await asyncio.to_thread(_render, named, context, rows)


def _own(job_id: str) -> str:
    """The part of a job's id that its responses' ids have, too."""
    return job_id.removeprefix("job_")


def _render(job: JobRow, context: JobContext, rows: JobRows) -> Computed:
    try:
        return render_results(job, context, rows)
    except Exception as error:
        raise _not_computed(error) from error


def _not_computed(error: Exception) -> InvalidJobError:
    log.warning("results of a bundle not computed", exc_info=error)
    return wrong(RESULTS, "can't be computed from the rows; the service's log has the error")
