"""Labelling rounds: a blinded sample of a job's sentences, and the answers so far."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.labels import rounds as labelling
from app.db.labels.rounds import RoundRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.dimension import Dimension
from app.domain.labels.annotation import Place
from app.domain.labels.contract import Labelled, LabellingRound, LabellingRoundIn, Stratum
from app.domain.labels.rounds import LabellingKind, draw_pairs, draw_sentences, strata_of
from app.services.errors import NotFoundError, WrongStateError
from app.services.identifiers import new_id
from app.services.job_context import JobContext, JobContexts
from app.services.jobs.view import find_job

MOST_SHOWN = 20
"""Rounds of a job that are listed."""
Subject = tuple[Place, Place | None]


@dataclass(frozen=True, slots=True)
class Round:
    """A round.

    Attributes:
        row: As it was drawn.
        dimension: What is asked about.
        things: One sentence each, or the two of a pair.
    """

    row: RoundRow
    dimension: Dimension
    things: tuple[Subject, ...]


async def draw_round(
    engine: AsyncEngine, contexts: JobContexts, tenant: str, wanted: LabellingRoundIn
) -> LabellingRound:
    """Draws a round. The same again is the same round, whatever has become of the job meanwhile.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job is not over: what is drawn from would still change.
        InvalidJobError: If the job has no such dimension, or nothing to draw.
    """
    job = await find_job(engine, tenant, wanted.job)
    context = await contexts.get(tenant, wanted.job)
    dimension = _dimension(context, wanted.dimension)
    key = (tenant, job.id, wanted.kind.value, dimension.id, wanted.size, wanted.seed)
    async with engine.begin() as connection:
        known = await labelling.find_round(connection, *key)
        if known is None and not job.status.is_terminal:
            raise WrongStateError(f"a job that is {job.status} can't be labelled yet", job.status)
        round_id = known.id if known else await _draw(connection, tenant, context, wanted, dimension.id)
    return await show_round(engine, tenant, round_id)


async def _draw(
    connection: AsyncConnection, tenant: str, context: JobContext, wanted: LabellingRoundIn, dimension: str
) -> str:
    traits = [
        (cell.ordinal, trait)
        for cell in context.cells
        for trait, each in enumerate(cell.dimensions)
        if each.id == dimension
    ]
    rows = await labelling.scored_sentences(
        connection, tenant, wanted.job, traits, each=wanted.size, seed=wanted.seed
    )
    draw = draw_pairs if wanted.kind is LabellingKind.PAIRS else draw_sentences
    sample = draw(strata_of(rows), wanted.size)
    if not sample.things:
        what = (
            "two sentences with different scores" if wanted.kind is LabellingKind.PAIRS else "scored sentence"
        )
        raise InvalidJobError([FieldError("/dimension", f"the job has no {what} on {dimension!r}")])
    return await labelling.keep_round(
        connection,
        {
            "id": new_id("lab"),
            "tenant": tenant,
            "job_id": wanted.job,
            "kind": wanted.kind.value,
            "dimension": dimension,
            "size": wanted.size,
            "seed": wanted.seed,
            "things": [[list(place) for place in thing] for thing in sample.things],
            "strata": [asdict(stratum) for stratum in sample.strata],
        },
    )


def dimensions_of_job(context: JobContext) -> list[Dimension]:
    """What a job's sentences are judged on, each dimension once."""
    return list({each.id: each for cell in context.cells for each in cell.dimensions}.values())


def _dimension(context: JobContext, wanted: str | None) -> Dimension:
    known = {each.id: each for each in dimensions_of_job(context)}
    if wanted is None and len(known) == 1:
        return next(iter(known.values()))
    if wanted is None or wanted not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise InvalidJobError([FieldError("/dimension", f"the job's sentences are judged on {listed}")])
    return known[wanted]


async def show_round(engine: AsyncEngine, tenant: str, round_id: str) -> LabellingRound:
    """A round, and how far it is.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        row = await _round_row(connection, tenant, round_id)
        answered = await labelling.count_answered(connection, tenant, round_id)
    return _shown(row, answered)


async def newest_rounds(engine: AsyncEngine, tenant: str, job_id: str) -> list[LabellingRound]:
    """A job's newest rounds, the newest first."""
    async with engine.connect() as connection:
        rows = await labelling.list_rounds(connection, tenant, job_id, MOST_SHOWN)
        return [_shown(row, await labelling.count_answered(connection, tenant, row.id)) for row in rows]


def _shown(row: RoundRow, answered: Sequence[tuple[str, int]]) -> LabellingRound:
    return LabellingRound(
        id=row.id,
        job=row.job_id,
        kind=LabellingKind(row.kind).value,
        dimension=row.dimension,
        size=row.size,
        seed=row.seed,
        n=len(row.things),
        strata=[Stratum(**stratum) for stratum in row.strata],
        annotators=[Labelled(annotator=annotator, answered=count) for annotator, count in answered],
        created_at=row.created_at,
        links={"page": f"/label/{row.id}"},
    )


async def read_round(engine: AsyncEngine, contexts: JobContexts, tenant: str, round_id: str) -> Round:
    """A round.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        row = await _round_row(connection, tenant, round_id)
    context = await contexts.get(tenant, row.job_id)
    return Round(row, _dimension(context, row.dimension), tuple(map(_subject, row.things)))


async def _round_row(connection: AsyncConnection, tenant: str, round_id: str) -> RoundRow:
    row = await labelling.get_round(connection, tenant, round_id)
    if row is None:
        raise NotFoundError("labelling round not found")
    return row


def _subject(thing: Sequence[Sequence[int]]) -> Subject:
    one, *other = (Place(*place) for place in thing)
    return one, other[0] if other else None
