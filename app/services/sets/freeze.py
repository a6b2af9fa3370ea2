"""Stores a job's questions or personas as a set, after its last preparation and again when it ends.

A job that is cancelled, or stops early, has a set of what there is by then: it was paid for. A retry may make more;
the set with it takes the place of the job's earlier one.
"""

import asyncio

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import shards
from app.db.jobs import jobs, preparations
from app.db.sets import sets
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.status import ENDING
from app.domain.personagym.diversity import diversity
from app.domain.sets.kinds import PERSONA_SET, QUESTION_SET, set_id
from app.services.sets.exemplars import freeze_exemplars
from app.services.sets.persona_sets import made_by, made_up
from app.services.sets.question_sets import question_set_id, questions_of


async def freeze_made(connection: AsyncConnection, tenant: str, job_id: str, spec: JobSpec) -> None:
    """Keeps what a locked job has made so far, if it made anything; doing so again changes nothing."""
    if spec.generation is not None:
        await _freeze_personas(connection, tenant, job_id)
    elif spec.gym is not None:
        await _freeze_questions(connection, tenant, job_id, spec)


async def _freeze_questions(connection: AsyncConnection, tenant: str, job_id: str, spec: JobSpec) -> None:
    steps = await preparations.questions_of_job(connection, tenant, job_id)
    content = questions_of(spec, steps)
    if content:
        id_ = await asyncio.to_thread(question_set_id, content)
        await sets.keep_set(connection, QUESTION_SET, tenant, id_, content, posted=False)
        await sets.note_made(connection, QUESTION_SET, tenant, job_id, id_)
        await freeze_exemplars(connection, tenant, job_id, spec, steps)


async def _freeze_personas(connection: AsyncConnection, tenant: str, job_id: str) -> None:
    step = await made_by(connection, tenant, job_id)
    if step is None or not step.content:
        return
    job = await jobs.get_job(connection, tenant, job_id)
    content = made_up(step.content)
    id_ = await asyncio.to_thread(set_id, PERSONA_SET, content)
    name = None if job is None else job.name
    await sets.keep_set(connection, PERSONA_SET, tenant, id_, content, name=name, posted=False)
    await sets.note_made(connection, PERSONA_SET, tenant, job_id, id_)


async def freeze_ending(engine: AsyncEngine, tenant: str, job_id: str, spec: JobSpec) -> bool:
    """Keeps what a job that is about to be finalized has made, and measures it.

    Returns:
        Whether there is still such a job.
    """
    if spec.generation is None and spec.gym is None:
        return True
    async with engine.begin() as connection:
        status = await jobs.lock_job(connection, job_id)
        if status is None:
            return False
        _, leased = await jobs.open_work(connection, job_id)
        if status in ENDING and not leased:
            # Nobody adds to it any more, also not who lost a lease and has not noticed.
            await shards.bar(connection, job_id)
            await freeze_made(connection, tenant, job_id, spec)
    await _measure(engine, tenant, job_id)
    return True


async def _measure(engine: AsyncEngine, tenant: str, job_id: str) -> None:
    """Measures the personas that a job made up; in no transaction, since a thousand of them take their time."""
    async with engine.connect() as connection:
        unmeasured = await sets.unmeasured_personas(connection, tenant, job_id)
    for made in unmeasured:
        descriptions = [persona["description"] for persona in made.content]
        measured = await asyncio.to_thread(diversity, descriptions)
        if measured is not None:
            async with engine.begin() as connection:
                await sets.store_diversity(connection, tenant, made.id, measured.model_dump())
