"""Reads what two judges gave the same texts, and bridges from the one to the other."""

import asyncio

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import preparations
from app.db.results import bridge_queries
from app.db.results.bridge_queries import SamePlaces, SameQuestion, SameTrait
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.plan import AtomicCell, gym
from app.domain.results.bridge import Bridge
from app.domain.results.request import BridgeIn, JudgeIn
from app.domain.results.warnings import TURNS
from app.domain.suggestion import did_you_mean
from app.services.errors import WrongStateError
from app.services.job_context import JobContexts
from app.services.jobs.view import find_job
from app.services.results.bridged_texts import BridgedSide, Read, bridge_of
from app.services.results.compare import CONVERSATIONS


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
    source = old.source_of(new)
    if source is not None and source.filter.get("instructions"):
        message = "its texts were chosen by instructions; choose them by runs, or none"
        raise InvalidJobError([FieldError("/new", message)])
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        read = await _read(connection, tenant, old, new)
    return await asyncio.to_thread(bridge_of, old, new, read, wanted.within)


async def _side(
    engine: AsyncEngine, contexts: JobContexts, tenant: str, pointer: str, wanted: JudgeIn
) -> BridgedSide:
    job = await find_job(engine, tenant, wanted.job)
    if not job.status.is_terminal:
        raise WrongStateError(
            f"job {job.id} is {job.status}; its judges can be bridged when it has ended", job.status
        )
    context = await contexts.get(tenant, job.id)
    if any(warning.get("code") == TURNS for warning in job.warnings or ()):
        raise InvalidJobError([FieldError(f"{pointer}/job", f"{CONVERSATIONS}: a bridge needs single texts")])
    labels = [judge.label for judge in context.spec.judges]
    if wanted.judge is None and len(labels) != 1:
        message = f"is required: the job's judges are {', '.join(labels) or 'none'}"
        raise InvalidJobError([FieldError(f"{pointer}/judge", message)])
    if wanted.judge is not None and wanted.judge not in labels:
        meant = did_you_mean(wanted.judge, labels) or f"; it has: {', '.join(labels)}"
        raise InvalidJobError(
            [FieldError(f"{pointer}/judge", f"the job has no judge {wanted.judge!r}{meant}")]
        )
    return BridgedSide(job, context, 0 if wanted.judge is None else labels.index(wanted.judge))


async def _read(connection: AsyncConnection, tenant: str, old: BridgedSide, new: BridgedSide) -> Read:
    same = _same_traits(old, new)
    questions = await _same_questions(connection, tenant, old, new)
    if not same and not questions:
        raise InvalidJobError(
            [FieldError("/new", "the jobs have no model, persona, task and dimension in common")]
        )
    atomic = {
        (each.old_cell, each.new_cell)
        for each in same
        if isinstance(old.context.cell(each.old_cell), AtomicCell)
    }
    values = SamePlaces(sorted(atomic), questions).values(tenant, old.named, new.named)
    texts = await bridge_queries.same_texts(connection, values)
    if not len(texts):
        raise InvalidJobError([FieldError("/new", "the jobs have no text in common")])
    graded = [sorted({each[side] for each in questions}) for side in (0, 1)]
    return Read(
        same=same,
        texts=texts,
        answered=await bridge_queries.answered(connection, tenant, new.job.id, len(new.context.cells)),
        by_old=await bridge_queries.score_counts(connection, tenant, old.named, old.traits_among(new)),
        by_new=await bridge_queries.score_counts(
            connection, tenant, new.named, [(each.new_cell, each.new_trait) for each in same]
        ),
        said=await bridge_queries.both_verdicts(connection, values, (old.named, new.named), same),
        old_grades=await bridge_queries.grades(connection, tenant, old.named, old.graded_among(new)),
        new_grades=await bridge_queries.grades(connection, tenant, new.named, graded[1]),
    )


def _same_traits(old: BridgedSide, new: BridgedSide) -> list[SameTrait]:
    """What both jobs measure: the same model, persona, task and dimension, with the same scale and level."""
    known = {(*old.name(place[0]), judged.dimension): (place, judged) for place, judged in old.traits.items()}
    found = []
    for place, judged in new.traits.items():
        there = known.get((*new.name(place[0]), judged.dimension))
        if there is not None and there[1] == judged:
            found.append(SameTrait(*there[0], *place, old.kinds.index(judged)))
    return found


async def _same_questions(
    connection: AsyncConnection, tenant: str, old: BridgedSide, new: BridgedSide
) -> list[SameQuestion]:
    """The questions of PersonaGym's tasks that both jobs asked a model as the same persona, by their words."""
    if not (gym(old.context.cells) and gym(new.context.cells)):
        return []
    numbers = []
    for side in (old, new):
        asked = await preparations.questions_of_job(connection, tenant, side.job.id)
        numbers.append(
            {
                side.name(cell.ordinal): (cell.ordinal, {words: n for n, words in enumerate(step.content)})
                for cell in gym(side.context.cells)
                if (step := asked.get((cell.person, cell.task.id))) is not None
            }
        )
    return [
        SameQuestion(cell, there[0], n, there[1][words])
        for name, (cell, questions) in numbers[0].items()
        if (there := numbers[1].get(name)) is not None
        for words, n in questions.items()
        if words in there[1]
    ]
