"""Reads responses with their units and verdicts: page by page for the API, as a stream for reports."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import readouts
from app.db.jobs import JobRow
from app.db.readouts import ResponseRecord, VerdictRecord
from app.domain.judged import JudgedResponse, JudgedUnit, UnitVerdict
from app.domain.model import Usage
from app.domain.plan import Cell
from app.domain.segmentation import units_at
from app.domain.verdict import VerdictStatus
from app.services.job_context import JobContext

Position = tuple[int, int, int]
"""(cell ordinal, run, item): what orders and names a job's responses."""


EXPORT_PAGE = 200


@dataclass(frozen=True, slots=True)
class ResponseFilter:
    """Which responses to show; ``None`` and ``False`` mean all."""

    model: str | None = None
    persona: str | None = None
    task: str | None = None
    out_of_character: bool = False

    def admits(self, context: JobContext, cell: Cell) -> bool:
        """Whether a cell's responses can be among them."""
        return (
            (self.model is None or context.spec.models[cell.model].label == self.model)
            and (self.persona is None or cell.persona.id == self.persona)
            and (self.task is None or cell.task.id == self.task)
        )


async def read_page(
    engine: AsyncEngine,
    job: JobRow,
    context: JobContext,
    wanted: ResponseFilter,
    *,
    after: Position | None,
    limit: int,
) -> tuple[list[JudgedResponse], Position | None]:
    """A page of responses, and the position after which the next one begins, if there is one."""
    cells = [cell for cell in context.cells if wanted.admits(context, cell)]
    async with engine.connect() as connection:
        records = await readouts.response_page(
            connection,
            job.tenant,
            job.id,
            cells=[cell.ordinal for cell in cells],
            out_of_character=_levels_in_scores(cells) if wanted.out_of_character else None,
            after=after,
            limit=limit + 1,
        )
        page, more = records[:limit], len(records) > limit
        keys = [_position(record) for record in page]
        verdicts = await readouts.verdicts_of(connection, job.tenant, job.id, keys)
    found: dict[Position, list[VerdictRecord]] = {key: [] for key in keys}
    for verdict in verdicts:
        found[verdict.cell, verdict.run, verdict.item].append(verdict)
    judged = [_judged(job, context, record, found[_position(record)]) for record in page]
    return judged, keys[-1] if more else None


async def stream_all(engine: AsyncEngine, job: JobRow, context: JobContext) -> AsyncIterator[JudgedResponse]:
    """Every response, in order, with flat memory. No connection is held while the reader takes its time."""
    after: Position | None = None
    while True:
        page, after = await read_page(engine, job, context, ResponseFilter(), after=after, limit=EXPORT_PAGE)
        for response in page:
            yield response
        if after is None:
            return


def _position(record: ResponseRecord) -> Position:
    return record.cell, record.run, record.item


def _levels_in_scores(cells: Sequence[Cell]) -> dict[tuple[int, int], tuple[int, int]]:
    """For each (cell, trait) the lowest and the highest score that is in character."""
    bounds: dict[tuple[int, int], tuple[int, int]] = {}
    for cell in cells:
        for n, dimension in enumerate(cell.dimensions):
            scale, level = dimension.scale, cell.persona.traits[n].level
            inside = [s for s in range(scale.minimum, scale.maximum + 1) if scale.level_of(s) == level]
            bounds[cell.ordinal, n] = (inside[0], inside[-1])
    return bounds


def _judged(
    job: JobRow, context: JobContext, record: ResponseRecord, verdicts: Sequence[VerdictRecord]
) -> JudgedResponse:
    spec, cell = context.spec, context.cells[record.cell]
    item = cell.items[record.item]
    generated = not spec.provided
    by_unit: dict[int, list[UnitVerdict]] = {}
    for verdict in verdicts:
        by_unit.setdefault(verdict.unit, []).append(_verdict(context, cell, verdict))
    return JudgedResponse(
        id=f"resp_{job.id.removeprefix('job_')}-{record.cell}-{record.run}-{record.item}",
        model=spec.models[cell.model].label,
        persona=cell.persona.id,
        levels={t.dimension: t.level for t in cell.persona.traits if t.dimension in item.dimensions},
        task=cell.task.id,
        item=item.id,
        item_text=item.text,
        run=record.run,
        instruction=record.instruction,
        iteration=record.run % spec.iterations if generated else None,
        status=record.status,
        text=record.text,
        error=record.error,
        finish_reason=record.finish_reason,
        usage=None
        if record.input_tokens is None or record.output_tokens is None
        else Usage(record.input_tokens, record.output_tokens),
        units=tuple(
            JudgedUnit(unit.index, unit.start, unit.end, unit.text, tuple(by_unit.get(unit.index, ())))
            for unit in units_at(record.text or "", record.unit_starts, record.unit_ends)
        ),
    )


def _verdict(context: JobContext, cell: Cell, record: VerdictRecord) -> UnitVerdict:
    dimension = cell.dimensions[record.trait]
    level = cell.persona.traits[record.trait].level
    return UnitVerdict(
        judge=context.spec.judges[record.judge].label,
        dimension=dimension.id,
        status=VerdictStatus(record.status),
        score=record.score,
        raw=record.raw,
        in_character=None if record.score is None else dimension.scale.level_of(record.score) == level,
    )
