"""Reports as files: which formats there are, and their bytes as a stream."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.judging.stepwise_json import parse_document
from app.services.job_context import JobContext
from app.services.results.baselines import BaselineFilter, baselines
from app.services.results.responses import stream_all, stream_pages
from app.services.results.run_distances import read_varying_cells


@dataclass(frozen=True, slots=True)
class Export:
    """A format of reports."""

    media_type: str
    extension: str
    disposition: str = "attachment"


EXPORTS = {
    "json": Export("application/json", "json", "inline"),
    "html": Export("text/html; charset=utf-8", "html", "inline"),
    "csv": Export("text/csv; charset=utf-8", "csv"),
    "jsonl": Export("application/jsonl", "jsonl"),
    "parquet": Export("application/vnd.apache.parquet", "parquet"),
}


TABLES = ("csv", "jsonl", "parquet")
"""The formats that have rows."""


async def export_report(
    engine: AsyncEngine, job: JobRow, context: JobContext, results: str, *, format_: str, level: str
) -> AsyncIterator[bytes]:
    """A report, chunk by chunk.

    Args:
        engine: Where the responses are.
        job: Which job's.
        context: Its specification.
        results: Its results as JSON text.
        format_: One of :data:`EXPORTS`.
        level: ``"verdicts"``, ``"cells"``, ``"persona_scores"`` or ``"judging_check"``; for tables only.
    """
    # Imported when needed: pyarrow and the templates would double the API's start-up time and memory.
    from app.reports import html  # noqa: PLC0415
    from app.reports.exports import csv, jsonl, parquet  # noqa: PLC0415

    rows = {"csv": csv.rows, "jsonl": jsonl.rows, "parquet": parquet.rows}
    tables = {
        "cells": {"csv": csv.cells, "jsonl": jsonl.cells, "parquet": parquet.cells},
        "persona_scores": {
            "csv": csv.persona_scores,
            "jsonl": jsonl.persona_scores,
            "parquet": parquet.persona_scores,
        },
        "judging_check": {
            "csv": csv.judging_check,
            "jsonl": jsonl.judging_check,
            "parquet": parquet.judging_check,
        },
    }
    if format_ == "json":
        yield results.encode()
    elif format_ == "html":
        document = await asyncio.to_thread(parse_document, results)
        distances = await read_varying_cells(engine, job, context, document["cells"])
        published = await asyncio.to_thread(lambda: baselines(BaselineFilter()))
        yield await html.html_report(results, stream_all(engine, job, context), distances, published)
    elif level in tables:
        write = tables[level][format_]
        yield await asyncio.to_thread(lambda: write(parse_document(results)))
    else:
        async for chunk in rows[format_](stream_pages(engine, job, context)):
            yield chunk
