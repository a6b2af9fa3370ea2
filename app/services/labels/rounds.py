"""Labelling rounds: a blinded sample of a job's sentences or responses, and the answers so far."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.labels import rounds as labelling
from app.db.labels.rounds import RoundRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.dimension import Dimension
from app.domain.jobs.plan import gym
from app.domain.labels.annotation import Place
from app.domain.labels.contract import Labelled, LabellingRound, LabellingRoundIn, Stratum
from app.domain.labels.rounds import (
    FEWEST_PILOT_LABELS,
    Allocation,
    LabellingKind,
    Pilot,
    Sample,
    draw_pairs,
    draw_responses,
    draw_sentences,
    draw_where_labels_help,
    strata_of,
)
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
        dimension: What is asked about; ``None`` where responses are graded by their tasks' rubrics.
        things: One sentence or response each, or the two of a pair.
    """

    row: RoundRow
    dimension: Dimension | None
    things: tuple[Subject, ...]


async def draw_round(
    engine: AsyncEngine, contexts: JobContexts, tenant: str, wanted: LabellingRoundIn, pilot: Pilot
) -> LabellingRound:
    """Draws a round. The same again is the same round, whatever has become of the job meanwhile.

    Args:
        engine: Where the sentences are.
        contexts: Where the specification is.
        tenant: Whose job.
        wanted: What is drawn.
        pilot: What earlier labels say, for a round that is divided by it.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job is not over: what is drawn from would still change.
        InvalidJobError: If the job has no such dimension, or nothing to draw, or too few labels to divide the round by; or if
            the same was drawn with another allocation, or for another number of answers.
    """
    job = await find_job(engine, tenant, wanted.job)
    context = await contexts.get(tenant, wanted.job)
    dimension = _asked_about(context, wanted)
    key = (tenant, job.id, wanted.kind.value, dimension, wanted.size, wanted.seed)
    async with engine.begin() as connection:
        known = await labelling.find_round(connection, *key)
        if known is None and not job.status.is_terminal:
            raise WrongStateError(f"a job that is {job.status} can't be labelled yet", job.status)
        if known is not None:
            _check_is_the_same(known, wanted)
            return _shown(known, await labelling.count_answered(connection, tenant, known.id))
        if wanted.kind is LabellingKind.RESPONSES:
            sample = await _draw_responses(connection, tenant, context, wanted)
        else:
            sample = await _draw_sentences(connection, tenant, context, wanted, dimension, pilot)
        round_id = await _keep(connection, tenant, wanted, dimension, sample)
    return await show_round(engine, tenant, round_id)


def _check_is_the_same(known: RoundRow, wanted: LabellingRoundIn) -> None:
    if _allocation(known) is not wanted.allocation:
        other = f"allocation {_allocation(known)}"
    elif known.answers_each != wanted.answers_each:
        other = f"answers_each {'null' if known.answers_each is None else known.answers_each}"
    else:
        return
    message = f"a round of this size and seed already exists, with {other}; use another seed"
    raise InvalidJobError([FieldError("/seed", message)])


async def _draw_responses(
    connection: AsyncConnection, tenant: str, context: JobContext, wanted: LabellingRoundIn
) -> Sample:
    cells = [(cell.ordinal, cell.model, cell.person) for cell in gym(context.cells)]
    found = await labelling.graded_responses(
        connection, tenant, wanted.job, cells, size=wanted.size, seed=wanted.seed
    )
    if not found:
        raise InvalidJobError([FieldError("/kind", "the job has no response with a grade")])
    return draw_responses(found, wanted.size, [model.label for model in context.spec.models])


async def _draw_sentences(
    connection: AsyncConnection,
    tenant: str,
    context: JobContext,
    wanted: LabellingRoundIn,
    dimension: str,
    pilot: Pilot,
) -> Sample:
    """Sentences, or pairs of them."""
    traits = [
        (cell.ordinal, trait)
        for cell in context.cells
        for trait, each in enumerate(cell.dimensions)
        if each.id == dimension
    ]
    drawn: dict[Place, tuple[str, int]] = {}
    if wanted.allocation is Allocation.NEYMAN:
        _check_pilot(pilot, dimension)
        drawn = await _drawn(connection, tenant, wanted.job, dimension)
    rows = await labelling.scored_sentences(
        connection, tenant, wanted.job, traits, each=wanted.size + len(drawn), seed=wanted.seed
    )
    strata = strata_of(rows)
    if wanted.allocation is Allocation.NEYMAN:
        sample = draw_where_labels_help(strata, wanted.size, pilot.spreads, drawn)
    else:
        draw = draw_pairs if wanted.kind is LabellingKind.PAIRS else draw_sentences
        sample = draw(strata, wanted.size)
    if not sample.things:
        what = (
            "two sentences with different scores" if wanted.kind is LabellingKind.PAIRS else "scored sentence"
        )
        raise InvalidJobError([FieldError("/dimension", f"the job has no {what} on {dimension!r}")])
    return sample


async def _keep(
    connection: AsyncConnection, tenant: str, wanted: LabellingRoundIn, dimension: str, sample: Sample
) -> str:
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
            "strata": [
                {name: value for name, value in asdict(stratum).items() if value is not None}
                for stratum in sample.strata
            ],
            "answers_each": wanted.answers_each,
        },
    )


def _check_pilot(pilot: Pilot, dimension: str) -> None:
    if pilot.labels < FEWEST_PILOT_LABELS:
        message = (
            f"neyman needs {FEWEST_PILOT_LABELS} labelled sentences of earlier rounds on {dimension!r};"
            f" there are {pilot.labels}"
        )
        raise InvalidJobError([FieldError("/allocation", message)])


def _allocation(row: RoundRow) -> Allocation:
    return Allocation.NEYMAN if any("spread" in each for each in row.strata) else Allocation.EVEN


async def _drawn(
    connection: AsyncConnection, tenant: str, job_id: str, dimension: str
) -> dict[Place, tuple[str, int]]:
    """What rounds of sentences have drawn, each with its task and score: things stand in the order of their strata."""
    found: dict[Place, tuple[str, int]] = {}
    for row in await labelling.rounds_of_job(connection, tenant, job_id):
        if row.kind == LabellingKind.SENTENCES and row.dimension == dimension:
            strata = [(each["task"], each["scores"][0]) for each in row.strata for _ in range(each["drawn"])]
            found |= {Place(*thing[0]): stratum for thing, stratum in zip(row.things, strata, strict=True)}
    return found


def dimensions_of_job(context: JobContext) -> list[Dimension]:
    """What a job's sentences are judged on, each dimension once."""
    return list(context.dimensions)


def _asked_about(context: JobContext, wanted: LabellingRoundIn) -> str:
    """The dimension's id; empty where responses are graded."""
    if wanted.kind is not LabellingKind.RESPONSES:
        return _dimension(context, wanted.dimension).id
    if wanted.dimension is not None:
        raise InvalidJobError([FieldError("/dimension", "responses are graded by their task's rubric")])
    return ""


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
        dimension=row.dimension or None,
        size=row.size,
        seed=row.seed,
        allocation=_allocation(row).value,
        answers_each=row.answers_each,
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
    dimension = _dimension(context, row.dimension) if row.dimension else None
    return Round(row, dimension, tuple(map(_subject, row.things)))


async def _round_row(connection: AsyncConnection, tenant: str, round_id: str) -> RoundRow:
    row = await labelling.get_round(connection, tenant, round_id)
    if row is None:
        raise NotFoundError("labelling round not found")
    return row


def _subject(thing: Sequence[Sequence[int]]) -> Subject:
    one, *other = (Place(*place) for place in thing)
    return one, other[0] if other else None
