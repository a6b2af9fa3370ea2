"""A data set for the Hugging Face Hub: Parquet files and a card, as ``datasets.load_dataset`` reads a folder."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from app.reports.exports.columns import LABEL_COLUMNS, TABLES, Column
from app.reports.exports.exported_job import SIMULATED, ExportedJob
from app.reports.exports.files import PAGED, write_pages, write_records, write_table
from app.reports.exports.parquet import ParquetWriter
from app.reports.exports.zips import Entry, one_part

_OF_RESULTS = ("cells", "totals", "persona_scores")
_OF_RESPONSES = ("responses", "verdicts")
_MEANINGS = {
    "responses": "A row for each response and dimension on which it was judged.",
    "verdicts": "A row for each sentence, judge and dimension.",
    "cells": "A row for each model, persona, task and dimension, with its metrics.",
    "totals": "A row for each group of cells and metric.",
    "persona_scores": "A row for each model, persona and PersonaGym task.",
    "labels": "A row for each answer of a person.",
}

_NEVER = (
    "responses of the control arm",
    "verdicts of the checks of grouping and of the options' order",
    "calls and their cost",
    "names of people who labelled, and their flags and notes",
)


async def dataset_entries(job: ExportedJob) -> AsyncIterator[Entry]:
    """The files of the data set."""
    tables = {
        name: TABLES[name].columns
        for name in _OF_RESULTS
        if any(True for _ in TABLES[name].records(job.results))
    }
    configs = {name: PAGED[name][0] for name in _OF_RESPONSES} | tables
    configs |= {} if job.labels is None else {"labels": LABEL_COLUMNS}
    yield Entry("README.md", one_part(_card(job, configs).encode()))
    for name in _OF_RESPONSES:
        yield Entry(f"data/{name}.parquet", write_pages(ParquetWriter, name, job.pages(None)))
    for name in tables:
        yield Entry(f"data/{name}.parquet", one_part(write_table(ParquetWriter, name, job.results)))
    if job.labels is not None:
        yield Entry("data/labels.parquet", write_records(ParquetWriter, LABEL_COLUMNS, job.labels()))


def _card(job: ExportedJob, configs: Mapping[str, Sequence[Column]]) -> str:
    # JSON is YAML, whatever characters a name has.
    about: dict[str, Any] = {
        "pretty_name": job.name or job.id,
        "license": "other",
        "license_name": "not-stated",
        "tags": ["persona-assay", "persona-fidelity", "llm-as-a-judge", *job.tags],
        "configs": [
            {"config_name": name, "data_files": f"data/{name}.parquet"} | ({"default": True} if not n else {})
            for n, name in enumerate(configs)
        ],
    }
    front = "\n".join(f"{name}: {json.dumps(value)}" for name, value in about.items())
    parts = [f"---\n{front}\n---\n\n# Persona fidelity: {_words(job.name or job.id)}\n"]
    if job.simulated:
        parts.append(f"**{SIMULATED}**\n")
    parts.append(
        f"Responses of language models that play personas, with verdicts of judges, from job `{job.id}` of"
        f" Persona Assay {job.release}, {job.at.date()}.\n"
    )
    parts.append(f"* Texts: {job.texts}\n* Models: {_list(m.label for m in job.spec.models)}")
    parts.append(
        f"* Judges: {_list(job.judges)}\n* Completeness: {job.results.completeness}\n{_left_out(job)}"
    )
    if imported := job.imported_judges:
        rows = "\n".join(f"* `{_words(judge)}`: {_words(source)}" for judge, source in imported.items())
        parts.append(f"Verdicts of these judges were imported; the job never called them:\n\n{rows}\n")
    parts.append(
        "No licence is stated: the texts are those of the models, and the terms of their providers apply to them and"
        " to what judges said. Texts are untrusted: they may address whoever reads them.\n"
    )
    for name, columns in configs.items():
        rows = "\n".join(f"| `{column.name}` | {column.type} | {column.meaning} |" for column in columns)
        parts.append(
            f"## {name}\n\n{_MEANINGS[name]}\n\n| column | type | meaning |\n|---|---|---|\n{rows}\n"
        )
    return "\n".join(parts)


def _left_out(job: ExportedJob) -> str:
    """What is missing of the job, and what of it an export of this form never has."""
    missing = [*job.results.completeness_reasons, *_NEVER]
    return "\n".join(["* Left out:", *(f"  * {_words(reason)}" for reason in missing), ""])


def _list(names: Any) -> str:
    return ", ".join(f"`{_words(name)}`" for name in names)


def _words(text: str) -> str:
    """Words without what Markdown gives a meaning."""
    return "".join(" " if character in "\r\n`<>[]|*_#\\" else character for character in text)
