"""Exemplars: kept with the questions that they were made for, brought along with questions, and shown."""

import asyncio
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.preparations import StoredStep
from app.db.sets import exemplars, sets
from app.db.sets.exemplars import ExemplarPlace
from app.domain.jobs.specification import JobSpec
from app.domain.personagym.exemplars import exemplar_key, persona_order, place_of, read_place
from app.domain.personagym.specification import GymSpec, question_item
from app.domain.sets.contract import JobExemplars, SetExemplars
from app.domain.sets.kinds import QUESTION_SET
from app.services.sets.sets import find_set

Steps = Mapping[tuple[int, str], StoredStep]
"""A job's questions by persona and task."""


async def freeze_exemplars(
    connection: AsyncConnection, tenant: str, job_id: str, spec: JobSpec, steps: Steps
) -> None:
    """Keeps the exemplars of a locked job with the question sets that it made and named.

    What somebody brought is kept with the set that it was brought with, and with no other.
    """
    gym = spec.gym
    if gym is None:
        return
    keys = await asyncio.to_thread(_keys, spec, gym, steps)
    for set_id in sorted(await sets.sets_of_job(connection, tenant, job_id)):
        if not set_id.startswith(f"{QUESTION_SET.prefix}_"):
            continue
        numbers = {
            who: n
            for n, who in enumerate(persona_order(await sets.personas_asked(connection, tenant, set_id)))
        }
        places = [
            ExemplarPlace(person, task, item, place_of(numbers[who], task, item), key)
            for (person, task, item), (who, key) in keys.items()
            if who in numbers
        ]
        await exemplars.keep_of_job(
            connection, tenant, job_id, set_id, places,
            reasoner=gym.reasoner.label, asked_only=gym.given_exemplars > 0,
        )  # fmt: skip


def _keys(spec: JobSpec, gym: GymSpec, steps: Steps) -> dict[tuple[int, str, int], tuple[str, str]]:
    """Of each question, by persona, task and number: the persona's description, and the key of its exemplars."""
    tasks = {task.id: task.task for task in gym.tasks}
    found = {}
    for (person, task), step in steps.items():
        who = spec.personas[person].description.strip()
        for item, question in enumerate(step.content):
            key = exemplar_key(gym.prompts, tasks[task], who, question, gym.reasoner)
            found[person, task, item] = who, key
    return found


async def exemplars_of_set(
    engine: AsyncEngine, tenant: str, set_id: str, *, limit: int, after: tuple[str, str] | None
) -> list[tuple[tuple[str, str], SetExemplars]]:
    """A page of a question set's exemplars, each behind what the next page begins after.

    Raises:
        NotFoundError: If the tenant has no such set.
    """
    found = await find_set(engine, QUESTION_SET, tenant, set_id)
    personas = persona_order(found.questions)
    async with engine.connect() as connection:
        kept = await exemplars.exemplars_of_set(connection, tenant, set_id, limit=limit, after=after)
    page = []
    for row in kept:
        persona, task, item = read_place(row.place)
        who = personas[persona]
        shown = SetExemplars(
            persona=who,
            task=task,
            question=found.questions[who][task][item],
            exemplars=list(row.content),
            reasoner=row.reasoner,
            key=row.key,
        )
        page.append(((row.place, row.key), shown))
    return page


async def exemplars_of_job(
    engine: AsyncEngine, tenant: str, job_id: str, spec: JobSpec, *, limit: int, offset: int
) -> list[JobExemplars]:
    """A page of the exemplars by which a job grades."""
    async with engine.connect() as connection:
        steps = await preparations.exemplars_of_job(connection, tenant, job_id, limit=limit, offset=offset)
        wanted = {(step.persona, step.task) for step in steps}
        questions = await preparations.questions_of_job(connection, tenant, job_id, wanted)
    return [
        JobExemplars(
            persona=spec.personas[step.persona].id,
            task=step.task,
            item=question_item(step.item, (), ()).id,
            question=questions[step.persona, step.task].content[step.item],
            exemplars=list(step.content),
            reused=step.ask == 0,
        )
        for step in steps
    ]
