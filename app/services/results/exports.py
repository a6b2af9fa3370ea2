"""Exports for other tools: a job in their own formats, as a stream."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Literal

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.asked import AskedPrompts
from app.domain.results.contract import Results
from app.services.job_context import JobContext
from app.services.results.exported_labels import is_labelled, label_records, people_scores
from app.services.results.read import ResultsReader
from app.services.results.responses import stream_pages

ExportFormat = Literal["preferences", "rewards", "dataset", "inspect", "every_eval_ever", "bundle"]
TextUnit = Literal["response", "sentence"]


@dataclass(frozen=True, slots=True)
class ExportForm:
    """A format of exports.

    Attributes:
        title: What people see.
        meaning: What its files have, and for whom.
        media_type: Its name in HTTP.
        extension: What its files' names end with.
        options: The names of the options that it takes.
    """

    title: str
    meaning: str
    media_type: str
    extension: str
    options: tuple[str, ...] = ()


_LINES, _ZIP = ("application/jsonl", "jsonl"), ("application/zip", "zip")
EXPORT_FORMS: Mapping[ExportFormat, ExportForm] = {
    "preferences": ExportForm(
        "Preferences",
        "Pairs of texts for the same prompt, one in character and one not, to train with DPO.",
        *_LINES,
        ("unit", "minimum_margin", "judge"),
    ),
    "rewards": ExportForm("Rewards", "A reward for each sentence and judge.", *_LINES, ("judge",)),
    "dataset": ExportForm("Data set", "Parquet files with a card, for the Hugging Face Hub.", *_ZIP),
    "inspect": ExportForm("Inspect AI", "A log for each model, which Inspect AI opens.", *_ZIP),
    "every_eval_ever": ExportForm(
        "Every Eval Ever", "Results and responses by the schema in which evaluations are shared.", *_ZIP
    ),
    "bundle": ExportForm(
        "Bundle",
        "All that another installation needs to compute the same results.",
        *_ZIP,
        ("raw_replies",),
    ),
}


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What of a job an export has; ``None`` where nothing was said.

    Attributes:
        unit: Whether pairs are of whole texts or of sentences.
        minimum_margin: By which share of the scale the texts of a pair differ at least.
        judge: Label of the only judge whose scores count.
        raw_replies: Whether a bundle has what judges said word for word.
    """

    unit: TextUnit | None = None
    minimum_margin: float | None = None
    judge: str | None = None
    raw_replies: bool | None = None

    def check(self, format_: ExportFormat) -> None:
        """Refuses options that a format does not take.

        Raises:
            InvalidJobError: If there is one.
        """
        for name in ("unit", "minimum_margin", "judge", "raw_replies"):
            if getattr(self, name) is not None and name not in EXPORT_FORMS[format_].options:
                takers = [each for each, form in EXPORT_FORMS.items() if name in form.options]
                raise InvalidJobError([FieldError(f"/query/{name}", f"only for {', '.join(takers)}")])

    def judges(self, context: JobContext) -> Sequence[str]:
        """Labels of the judges whose scores count.

        Raises:
            InvalidJobError: If the job has no such judge.
        """
        labels = [judge.label for judge in context.spec.judges]
        if self.judge is None:
            return labels
        if self.judge not in labels:
            why = f"the job has no such judge; its judges: {', '.join(labels)}"
            raise InvalidJobError([FieldError("/query/judge", why)])
        return [self.judge]


async def export_job(
    reader: ResultsReader,
    job: JobRow,
    context: JobContext,
    format_: ExportFormat,
    options: ExportOptions,
    engine: AsyncEngine,
) -> AsyncGenerator[bytes]:
    """A job as another tool reads it, chunk by chunk.

    Raises:
        InvalidJobError: If there is no such export of the job.
        WrongStateError: If there is none yet.
    """
    options.check(format_)
    judges = options.judges(context)
    if format_ == "bundle":
        from app.services.results.bundle_export import export_bundle  # noqa: PLC0415 - as below

        return await export_bundle(engine, job, replies=options.raw_replies is not False)
    if format_ in ("preferences", "rewards"):
        return _training_lines(engine, job, context, format_, options, judges)
    labelled = await is_labelled(engine, job)
    return _files(engine, job, context, format_, await reader.read_model(job), labelled=labelled)


def _files(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    format_: ExportFormat,
    results: Results,
    *,
    labelled: bool,
) -> AsyncGenerator[bytes]:
    # Imported when needed, as in reports: pyarrow is behind it.
    from app.reports.exports import dataset, every_eval_ever, inspect_log  # noqa: PLC0415
    from app.reports.exports.exported_job import ExportedJob  # noqa: PLC0415
    from app.reports.exports.zips import zipped  # noqa: PLC0415

    exported = ExportedJob(
        id=job.id,
        name=job.name,
        simulated=job.simulated,
        status=job.status,
        at=job.finished_at or job.created_at,
        spec=context.spec,
        results=results,
        release=results.manifest["versions"]["persona-assay"],
        prompts=AskedPrompts(context.spec, context.cells),
        pages=lambda model: stream_pages(engine, job, context, figures=True, model=model),
        labels=partial(label_records, engine, job) if labelled else None,
    )
    entries = {
        "dataset": dataset.dataset_entries,
        "inspect": inspect_log.inspect_entries,
        "every_eval_ever": every_eval_ever.eval_entries,
    }
    return zipped(entries[format_](exported))


async def _training_lines(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    format_: ExportFormat,
    options: ExportOptions,
    judges: Sequence[str],
) -> AsyncGenerator[bytes]:
    # Imported when needed, as in reports: pyarrow is behind it.
    from app.reports.exports.sink import next_chunk  # noqa: PLC0415
    from app.reports.exports.training import Judged, PreferenceLines, RewardLines  # noqa: PLC0415

    imported = [each.label for each in context.spec.judges if each.imported and each.label in judges]
    marks = {"job": job.id, "simulated": job.simulated, "imported_judges": imported}
    judged = Judged(AskedPrompts(context.spec, context.cells), context.dimensions, judges, marks)
    lines: PreferenceLines | RewardLines = RewardLines(judged)
    if format_ == "preferences":
        lines = PreferenceLines(judged, options.unit or "response", options.minimum_margin or 0.0)
    labelled = await is_labelled(engine, job)
    async with aclosing(stream_pages(engine, job, context)) as pages:
        async for page in pages:
            if labelled and isinstance(lines, RewardLines):
                lines.people = await people_scores(engine, job, page)
            parts = lines.add(page)
            while part := await asyncio.to_thread(next_chunk, parts):
                yield part
    parts = lines.end()
    while part := await asyncio.to_thread(next_chunk, parts):
        yield part
