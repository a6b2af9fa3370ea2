"""Reports as files: which formats there are, and their bytes as a stream."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.labels.human_agreement import HumanStudy
from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.contract import Results
from app.domain.results.gate import Held
from app.services.job_context import JobContext
from app.services.jobs.text_sources import attributes_of
from app.services.results.baselines import BaselineFilter, baselines
from app.services.results.by_instruction import read_by_instruction
from app.services.results.comparison_notes import judged, notes_on_published
from app.services.results.environments import read_environments
from app.services.results.responses import Arm, stream_all, stream_pages
from app.services.results.run_distances import read_varying_cells

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


async def export_report(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    results: str,
    *,
    format_: ReportFormat,
    level: ReportLevel,
    calibrated: Sequence[Json] = (),
    study: HumanStudy | None = None,
    held: Held | None = None,
    named: Sequence[BaselineFigures] = (),
    service: str = "",
) -> AsyncIterator[bytes]:
    """A report, chunk by chunk.

    Args:
        engine: Where the responses are.
        job: Which job's.
        context: Its specification.
        results: Its results as JSON text.
        format_: Which format.
        level: What a row is; for tables only.
        calibrated: Its figures as people would give them, for HTML.
        study: How far people agree with its judges, for HTML.
        held: What its thresholds say of it, for HTML.
        named: Baselines of one's own beside it, for HTML.
        service: Where the service is reached, for HTML's links.
    """
    if format_ == "json":
        yield results.encode()
    elif format_ == "html":
        yield await _html(engine, job, context, results, calibrated, study, held, named, service)
    else:
        # Imported when needed: pyarrow would double the API's start-up time and memory.
        from app.reports.exports import csv, files, jsonl, parquet  # noqa: PLC0415

        formats: dict[str, files.Format] = {
            "csv": csv.csv_writer,
            "jsonl": jsonl.jsonl_writer,
            "parquet": parquet.ParquetWriter,
        }
        if level in files.PAGED:
            arm: Arm = "control" if level == "control_verdicts" else "persona"
            pages = stream_pages(engine, job, context, arm, figures=level == "responses")
            async for chunk in files.write_pages(formats[format_], level, pages):
                yield chunk
        else:
            yield await asyncio.to_thread(
                lambda: files.write_table(formats[format_], level, Results.read(results))
            )


async def _html(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    results: str,
    calibrated: Sequence[Json],
    study: HumanStudy | None,
    held: Held | None,
    named: Sequence[BaselineFigures],
    service: str,
) -> bytes:
    from app.reports import html  # noqa: PLC0415 - the templates, for the same reason

    found = await asyncio.to_thread(Results.read, results)
    distances = await read_varying_cells(engine, job, context, found.cells)
    published = await asyncio.to_thread(baselines, BaselineFilter())
    by_instruction = await read_by_instruction(engine, job, context)
    environments = await read_environments(engine, job, context)
    responses = stream_all(engine, job, context)
    return await html.html_report(
        results,
        responses,
        distances,
        published,
        calibrated,
        job.error,
        study,
        by_instruction,
        environments,
        attributes_of(job, found.source),
        held,
        named,
        service=service,
        beside=notes_on_published(judged(context.spec, found.manifest, job.finished_at)),
    )
