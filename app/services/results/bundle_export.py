"""Writes reproduction bundles."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator

from pydantic_core import to_json
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import bundles, jobs
from app.db.jobs.jobs import JobRow
from app.db.jobs.retries import count_reopenings
from app.domain.jobs.bundle import (
    HEADER,
    JOB,
    NOT_IN_BUNDLES,
    RESULTS,
    ROWS,
    SETS,
    SPECIFICATION,
    TABLES,
    VERSION,
    BundleFile,
    BundleHeader,
    with_secret,
)
from app.reports.exports.zips import Entry, one_part, zipped
from app.services.errors import WrongStateError
from app.services.results.bundle_sets import sets_of
from app.services.results.manifest import RELEASE
from app.services.results.responses import CutOffError


async def export_bundle(engine: AsyncEngine, job: JobRow, *, replies: bool) -> AsyncGenerator[bytes]:
    """A job's bundle, chunk by chunk; without ``replies`` it lacks what judges said word for word.

    Raises:
        WrongStateError: If the job has no stored results.
        CutOffError: Before the last chunk, if the job is not any longer what it was at the first.
    """
    async with engine.connect() as connection:
        results = await jobs.stored_result(connection, job.tenant, job.id)
        reopenings = await count_reopenings(connection, job.tenant, job.id)
    if results is None or not job.status.is_terminal:
        raise WrongStateError("the job has no final results yet", job.status)
    return zipped(_Bundle(engine, job, results, reopenings, replies=replies).entries())


class _Bundle:
    """A bundle's files, and their hashes as they are read."""

    def __init__(
        self, engine: AsyncEngine, job: JobRow, results: str, reopenings: int, *, replies: bool
    ) -> None:
        self._engine, self._job, self._results = engine, job, results
        self._reopenings = reopenings
        self._replies = replies
        self._files: dict[str, BundleFile] = {}

    async def entries(self) -> AsyncIterator[Entry]:
        """The files in their order."""
        tenant, job_id = self._job.tenant, self._job.id
        async with self._engine.connect() as connection:
            job = await bundles.job_fields(connection, tenant, job_id)
            spec = await jobs.get_spec(connection, tenant, job_id)
            kept = await sets_of(connection, tenant, job_id)
        yield self._hashed(JOB, one_part(to_json(job)))
        yield self._hashed(SPECIFICATION, one_part(to_json(with_secret(spec or {}, NOT_IN_BUNDLES))))
        yield self._hashed(RESULTS, one_part(self._results.encode()))
        yield self._hashed(SETS, one_part(b"".join(to_json(each) + b"\n" for each in kept)))
        for table in ROWS:
            yield self._hashed(f"{TABLES}{table}.jsonl", self._rows(table))
        await self._check_unchanged()
        header = BundleHeader(
            format="persona-assay-bundle",
            version=VERSION,
            release=RELEASE,
            job=job_id,
            simulated=self._job.simulated,
            replies=self._replies,
            files=self._files,
        )
        yield Entry(HEADER, one_part(header.model_dump_json().encode()))

    async def _rows(self, table: str) -> AsyncIterator[bytes]:
        job = self._job
        async for lines in bundles.stream_rows(
            self._engine, job.tenant, job.id, table, replies=self._replies
        ):
            yield await asyncio.to_thread(_joined, lines)

    def _hashed(self, path: str, parts: AsyncIterator[bytes]) -> Entry:
        return Entry(path, self._hash(path, parts))

    async def _hash(self, path: str, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        found, length = hashlib.sha256(), 0
        async for part in parts:
            await asyncio.to_thread(found.update, part)
            length += len(part)
            yield part
        self._files[path] = BundleFile(sha256=found.hexdigest(), bytes=length)

    async def _check_unchanged(self) -> None:
        async with self._engine.connect() as connection:
            found = await jobs.stored_result(connection, self._job.tenant, self._job.id)
            reopenings = await count_reopenings(connection, self._job.tenant, self._job.id)
        if found != self._results or reopenings != self._reopenings:
            raise CutOffError


def _joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
