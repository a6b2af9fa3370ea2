"""Reads what several models answered to the same: one persona, task, item and run."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.results.response_pages import Position
from app.domain.jobs.plan import AtomicCell, Cell, GymCell
from app.domain.judging.judged_response import JudgedResponse
from app.services.job_context import JobContext
from app.services.results.responses import read_at, read_response


@dataclass(frozen=True, slots=True)
class Source:
    """A job that responses are read from."""

    job: JobRow
    context: JobContext


async def read_side_by_side(
    engine: AsyncEngine, source: Source, place: Position, other: Source | None
) -> tuple[list[JudgedResponse], bool]:
    """The response at a place of a job, then those of the job's other models to the same; or of another job's models.

    Returns:
        The responses, and whether there are more than make a page.

    Raises:
        NotFoundError: If there is no response at the place.
    """
    own = await read_response(engine, source.job, source.context, place)
    beside = source if other is None else other
    cell, run, item = place
    asked = source.context.cell(cell)
    places = [
        (each.ordinal, run, item)
        for each in (*beside.context.cells, *beside.context.control)
        if _is_asked_alike(each, asked) and (other is not None or each.ordinal != cell)
    ]
    found, cut = await read_at(engine, beside.job, beside.context, places)
    # Of another job the item of this number may be another question.
    return [own, *(each for each in found if each.item.text == own.item.text)], cut


def _is_asked_alike(cell: Cell, asked: Cell) -> bool:
    mine, theirs = (
        (each.control, each.persona.id, each.persona.description, each.task.id) for each in (cell, asked)
    )
    return mine == theirs


def neighbours(context: JobContext, place: Position) -> tuple[Position | None, Position | None]:
    """The places before and after one among those of its model: by item, run, then task and persona."""
    cell, run, item = place
    at = context.cell(cell)
    arm = context.control if at.control else context.cells
    own = [each for each in arm if each.model == at.model]
    nth = own.index(at)
    return _before(own, nth, run, item), _after(own, nth, run, item)


def _items(cell: Cell) -> int:
    if isinstance(cell, AtomicCell):
        return len(cell.items)
    return cell.questions if isinstance(cell, GymCell) else 0


def _after(own: Sequence[Cell], nth: int, run: int, item: int) -> Position | None:
    cell = own[nth]
    if item + 1 < _items(cell):
        return cell.ordinal, run, item + 1
    if run + 1 < cell.runs:
        return cell.ordinal, run + 1, 0
    return (own[nth + 1].ordinal, 0, 0) if nth + 1 < len(own) else None


def _before(own: Sequence[Cell], nth: int, run: int, item: int) -> Position | None:
    if item:
        return own[nth].ordinal, run, item - 1
    if run:
        return own[nth].ordinal, run - 1, _items(own[nth]) - 1
    if not nth:
        return None
    former = own[nth - 1]
    return former.ordinal, max(0, former.runs - 1), _items(former) - 1
