"""Reports as files: their formats and contents."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import to_json
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.labels.human_agreement import HumanStudy
from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.contract import Results
from app.domain.results.gate import Held
from app.readers.pool import ReaderPool
from app.reports.material import Material, sample_of
from app.services.job_context import JobContext
from app.services.jobs.text_sources import attributes_of
from app.services.results.by_instruction import read_by_instruction
from app.services.results.comparison_notes import judged, notes_on_published
from app.services.results.drawing import PAGE, beside_published, draw, page
from app.services.results.environments import read_environments
from app.services.results.responses import Arm, stream_all, stream_pages
from app.services.results.run_distances import read_varying_cells

if TYPE_CHECKING:
    from app.reports.exports import files

KEPT_BYTES = 16_000_000
"""Packed HTML reports that are kept; one has some 100 to 300 kB."""

Json = Mapping[str, Any]
ReportFormat = Literal["json", "html", "csv", "jsonl", "parquet"]
ReportLevel = Literal[
    "verdicts",
    "responses",
    "cells",
    "totals",
    "persona_scores",
    "judging_check",
    "order_check",
    "control_verdicts",
]
"""What a row of a table is."""


@dataclass(frozen=True, slots=True)
class Export:
    """A format of reports.

    Attributes:
        media_type: Its name in HTTP.
        extension: What its files' names end with.
        table: Whether it has rows, of whichever level; other formats show whole results.
    """

    media_type: str
    extension: str
    table: bool = False

    @property
    def disposition(self) -> str:
        """Whether a browser shows it or saves it."""
        return "attachment" if self.table else "inline"


EXPORTS: Mapping[ReportFormat, Export] = {
    "json": Export("application/json", "json"),
    "html": Export("text/html; charset=utf-8", "html"),
    "csv": Export("text/csv; charset=utf-8", "csv", table=True),
    "jsonl": Export("application/jsonl", "jsonl", table=True),
    "parquet": Export("application/vnd.apache.parquet", "parquet", table=True),
}


PAGED_LEVELS: Collection[ReportLevel] = ("verdicts", "responses", "control_verdicts")
"""Tables made of responses; the others are part of the results."""


@dataclass(frozen=True, slots=True)
class ReportContent:
    """The parts of an HTML report that don't come from the job's rows.

    Attributes:
        results: The results as JSON text.
        calibrated: Its figures as people would give them.
        study: How far people agree with its judges.
        held: The outcome of its thresholds.
        named: The tenant's baselines.
        service: The service's address, for links.
    """

    results: str
    calibrated: Sequence[Json] = ()
    study: HumanStudy | None = None
    held: Held | None = None
    named: Sequence[BaselineFigures] = ()
    service: str = ""

    def digest(self, job: JobRow) -> bytes:
        """A hash of all that the page of an ended job is made of; its rows don't change."""
        rest = (self.calibrated, self.study, self.held, self.named, self.service)
        found = sha256(self.results.encode())
        found.update(to_json((job.id, job.finished_at, job.error, *rest), serialize_unknown=True))
        return found.digest()


class ReportPages:
    """Makes HTML reports; keeps those of ended jobs, packed."""

    def __init__(self, engine: AsyncEngine, readers: ReaderPool) -> None:
        self._engine = engine
        self._readers = readers
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()

    async def packed(self, job: JobRow, context: JobContext, content: ReportContent) -> bytes:
        """A job's page, packed by gzip."""
        digest = await asyncio.to_thread(content.digest, job)
        packed = self._kept.get(digest)
        if packed is None:
            packed = await _page(self._engine, self._readers, job, context, content)
            if job.status.is_terminal:
                self._kept[digest] = packed
        if digest in self._kept:
            self._kept.move_to_end(digest)
        while sum(map(len, self._kept.values())) > KEPT_BYTES:
            self._kept.popitem(last=False)
        return packed


async def stream_table(
    engine: AsyncEngine, job: JobRow, context: JobContext, format_: ReportFormat, level: ReportLevel
) -> AsyncGenerator[bytes]:
    """A table of :data:`PAGED_LEVELS`, chunk by chunk."""
    from app.reports.exports import files  # noqa: PLC0415 - see _writers

    arm: Arm = "control" if level == "control_verdicts" else "persona"
    pages = stream_pages(engine, job, context, arm, figures=level == "responses")
    async for chunk in files.write_pages(_writers()[format_], level, pages):
        yield chunk


def result_table(results: str, format_: ReportFormat, level: ReportLevel) -> bytes:
    """A table that is part of the results."""
    from app.reports.exports import files  # noqa: PLC0415 - see _writers

    return files.write_table(_writers()[format_], level, Results.read(results))


def _writers() -> Mapping[str, "files.Format"]:
    # Imported when needed: pyarrow would double the API's start-up time and memory.
    from app.reports.exports import csv, jsonl, parquet  # noqa: PLC0415

    return {"csv": csv.csv_writer, "jsonl": jsonl.jsonl_writer, "parquet": parquet.ParquetWriter}


async def _page(
    engine: AsyncEngine, readers: ReaderPool, job: JobRow, context: JobContext, content: ReportContent
) -> bytes:
    found = await asyncio.to_thread(Results.read, content.results)
    published = await asyncio.to_thread(
        beside_published, found, content.named, attributes_of(job, found.source)
    )
    material = Material(
        content.results,
        await sample_of(found, stream_all(engine, job, context)),
        published,
        await read_varying_cells(engine, job, context, found.cells),
        content.calibrated,
        job.error,
        content.study,
        await read_by_instruction(engine, job, context),
        await read_environments(engine, job, context),
        content.held,
        content.service,
        notes_on_published(judged(context.spec, found.manifest, job.finished_at)),
    )
    return await draw(readers, PAGE, job.tenant, page, material)
