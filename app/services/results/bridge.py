"""Reads what two judges gave the same texts, and bridges from the one to the other."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.results import bridge_queries
from app.db.results.bridge_queries import Judge, SameTrait, ScoredRow, TraitRange
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.dimension import Dimension
from app.domain.jobs.plan import AtomicCell, Cell
from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.results.bridge import (
    NOT_BRIDGED,
    Bridge,
    BridgedPair,
    BridgeSide,
    JudgedText,
    Scored,
    agreements,
    bridged_figures,
    decided,
    recommendation,
)
from app.domain.results.paired_verdicts import Pair, Position
from app.domain.results.request import BridgeIn, JudgeIn
from app.domain.suggestion import did_you_mean
from app.services.errors import WrongStateError
from app.services.job_context import JobContext, JobContexts
from app.services.jobs.view import find_job


@dataclass(frozen=True, slots=True)
class _Side:
    job: JobRow
    context: JobContext
    judge: int

    @property
    def named(self) -> Judge:
        return Judge(self.job.id, self.judge)

    @property
    def shown(self) -> BridgeSide:
        return BridgeSide(job=self.job.id, judge=self.context.spec.judges[self.judge].label)

    def name(self, cell: Cell) -> tuple[str, str, str]:
        return self.context.spec.models[cell.model].label, cell.persona.id, cell.task.id

    @property
    def traits(self) -> Mapping[tuple[int, int], tuple[Cell, Dimension, str]]:
        """The cells of its atomic tasks by their ordinals and their traits, with dimension and level."""
        return {
            (cell.ordinal, n): (cell, dimension, cell.persona.traits[n].level)
            for cell in self.context.cells
            if isinstance(cell, AtomicCell)
            for n, dimension in enumerate(cell.dimensions)
        }


async def bridge(engine: AsyncEngine, contexts: JobContexts, tenant: str, wanted: BridgeIn) -> Bridge:
    """How far two judges agree on the same texts, and the old one's totals as the new one would give them.

    Args:
        engine: Where to look.
        contexts: The jobs' specifications.
        tenant: Whose jobs.
        wanted: The judges and the margin.

    Raises:
        NotFoundError: If a job does not exist.
        WrongStateError: If a job is not over.
        InvalidJobError: If a judge is not named or not there, or the two have no text in common.
    """
    old = await _side(engine, contexts, tenant, "/old", wanted.old)
    new = await _side(engine, contexts, tenant, "/new", wanted.new)
    if old.shown == new.shown:
        raise InvalidJobError([FieldError("/new", "must differ from old")])
    same = _same_traits(old, new)
    if not same:
        raise InvalidJobError(
            [FieldError("/new", "the jobs have no model, persona, task and dimension in common")]
        )
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        cells = sorted({(each.old_cell, each.new_cell) for each in same})
        texts = await bridge_queries.same_texts(connection, tenant, old.job.id, new.job.id, cells)
        answered = await bridge_queries.answered(connection, tenant, new.job.id, len(new.context.cells))
        if not texts:
            raise InvalidJobError([FieldError("/new", "the jobs have no text in common")])
        by_old = await _scores(connection, tenant, old, _wanted_traits(old, new))
        by_new = await _scores(connection, tenant, new, [(each.new_cell, each.new_trait) for each in same])
        pairs = []
        traits = old.traits
        async for part in bridge_queries.both_verdicts(connection, tenant, old.named, new.named, same):
            for row in part:
                _, dimension, level = traits[row.cell, row.trait]
                first = Verdict(VerdictStatus(row.new_status), row.new_score)
                second = Verdict(VerdictStatus(row.old_status), row.old_score)
                pair = Pair(dimension.scale, level, first, second)
                pairs.append(BridgedPair(dimension.id, (row.cell, row.run, row.item), pair))
    judged = _texts(old, _as_chosen(old, new, by_old))
    anchors = _anchors(old, same, texts, by_new)

    def work() -> Bridge:
        figures = bridged_figures(judged, anchors, wanted.within)
        return Bridge(
            old=old.shown,
            new=new.shown,
            texts=len({text.place for text in judged}),
            anchors=len(texts),
            unpaired=answered - len(texts),
            within=wanted.within,
            agreement=agreements(pairs, new.context.spec.seed),
            figures=figures,
            not_bridged=NOT_BRIDGED,
            interchangeable=decided(figures),
            recommendation=recommendation(figures, wanted.within),
        )

    return await asyncio.to_thread(work)


async def _side(
    engine: AsyncEngine, contexts: JobContexts, tenant: str, pointer: str, wanted: JudgeIn
) -> _Side:
    job = await find_job(engine, tenant, wanted.job)
    if not job.status.is_terminal:
        raise WrongStateError(
            f"job {job.id} is {job.status}; its judges can be bridged when it has ended", job.status
        )
    context = await contexts.get(tenant, job.id)
    labels = [judge.label for judge in context.spec.judges]
    if wanted.judge is None and len(labels) != 1:
        message = f"is required: the job's judges are {', '.join(labels) or 'none'}"
        raise InvalidJobError([FieldError(f"{pointer}/judge", message)])
    if wanted.judge is not None and wanted.judge not in labels:
        meant = did_you_mean(wanted.judge, labels) or f"; it has: {', '.join(labels)}"
        raise InvalidJobError(
            [FieldError(f"{pointer}/judge", f"the job has no judge {wanted.judge!r}{meant}")]
        )
    return _Side(job, context, 0 if wanted.judge is None else labels.index(wanted.judge))


def _same_traits(old: _Side, new: _Side) -> list[SameTrait]:
    """What both jobs measure: the same model, persona, task and dimension, with the same scale and level."""
    known = {
        (*old.name(cell), dimension.id): (place, dimension.scale, level)
        for place, (cell, dimension, level) in old.traits.items()
    }
    found = []
    for place, (cell, dimension, level) in new.traits.items():
        there = known.get((*new.name(cell), dimension.id))
        if there is not None and there[1:] == (dimension.scale, level):
            found.append(SameTrait(*there[0], *place))
    return found


def _wanted_traits(old: _Side, new: _Side) -> list[tuple[int, int]]:
    """The old job's cells from which the anchors were drawn, by ordinal and trait: those that the new one's texts may be of."""
    source = new.context.spec.source
    if source is not None and source.job == old.job.id:
        named = [set(source.filter.get(field, ())) for field in ("models", "personas", "tasks")]
    else:
        names = [new.name(cell) for cell in new.context.cells]
        named = [set(column) for column in zip(*names, strict=True)]
    return [
        place
        for place, (cell, _, _) in old.traits.items()
        if all(not wanted or name in wanted for name, wanted in zip(old.name(cell), named, strict=True))
    ]


def _as_chosen(old: _Side, new: _Side, rows: Sequence[ScoredRow]) -> Sequence[ScoredRow]:
    """Those of the runs and items among which the anchors were drawn.

    Raises:
        InvalidJobError: If they were chosen by instruction, which scores do not tell.
    """
    source = new.context.spec.source
    if source is None or source.job != old.job.id:
        return rows
    if source.filter.get("instructions"):
        message = "its texts were chosen by instructions; choose them by runs, or none"
        raise InvalidJobError([FieldError("/new", message)])
    runs, items = (source.filter.get(name) for name in ("runs", "items"))
    return [
        row
        for row in rows
        if (not runs or row.run in runs)
        and (not items or _item(old.context.cell(row.cell), row.item) in items)
    ]


def _item(cell: Cell, number: int) -> str | None:
    return cell.items[number].id if isinstance(cell, AtomicCell) else None


async def _scores(
    connection: AsyncConnection, tenant: str, side: _Side, places: Sequence[tuple[int, int]]
) -> list[ScoredRow]:
    known = side.traits
    ranges = []
    for place in places:
        _, dimension, level = known[place]
        scale = dimension.scale
        inside = [n for n in range(scale.minimum, scale.maximum + 1) if scale.level_of(n) == level]
        ranges.append(TraitRange(*place, inside[0], inside[-1]))
    found: list[ScoredRow] = []
    async for part in bridge_queries.scores(connection, tenant, side.named, ranges):
        found += part
    return found


def _texts(old: _Side, rows: Sequence[ScoredRow]) -> list[JudgedText]:
    known = old.traits
    found = []
    for row in rows:
        cell, dimension, level = known[row.cell, row.trait]
        model, _, task = old.name(cell)
        scale = dimension.scale.minimum, dimension.scale.maximum
        place = row.cell, row.run, row.item
        found.append(JudgedText(place, model, task, dimension.id, level, scale, Scored(*row[4:])))
    return found


def _anchors(
    old: _Side, same: Sequence[SameTrait], texts: Sequence[bridge_queries.SameText], rows: Sequence[ScoredRow]
) -> dict[tuple[Position, str], Scored | None]:
    """What the new judge gave each text that both have, by its place in the old job and dimension; ``None`` without a score."""
    known = old.traits
    of_new = {(each.new_cell, each.new_trait): each for each in same}
    scored = {
        (
            of_new[row.cell, row.trait].old_cell,
            of_new[row.cell, row.trait].old_trait,
            row.run,
            row.item,
        ): Scored(*row[4:])
        for row in rows
    }
    by_cell: dict[int, list[int]] = {}
    for each in same:
        by_cell.setdefault(each.old_cell, []).append(each.old_trait)
    return {
        ((text.cell, text.run, text.item), known[text.cell, trait][1].id): scored.get(
            (text.cell, trait, text.run, text.item)
        )
        for text in texts
        for trait in by_cell[text.cell]
    }
