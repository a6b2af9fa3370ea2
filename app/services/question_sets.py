"""Question sets: immutable, named by their content, so that other models or later jobs answer the same questions."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db import preparations
from app.db.preparations import StoredStep
from app.domain.errors import FieldError, InvalidJobError, escape_pointer
from app.domain.personagym.task import GymTask, task_named
from app.domain.spec import JobSpec
from app.services.errors import NotFoundError

Questions = dict[str, dict[str, list[str]]]
"""Questions by task by persona description."""


def set_id(content: Mapping[str, Mapping[str, list[str]]]) -> str:
    """The id of a question set: a hash of its content."""
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return "qset_" + hashlib.sha256(canonical.encode()).hexdigest()[:32]


def questions_of(spec: JobSpec, steps: Mapping[tuple[int, str], StoredStep]) -> Questions:
    """The content of a job's question set: what was prepared completely."""
    found: Questions = {}
    for (person, task), step in sorted(steps.items(), key=lambda entry: entry[0]):
        if step.status == "ready":
            found.setdefault(spec.personas[person].description.strip(), {})[task] = list(step.content)
    return found


async def freeze_questions(connection: AsyncConnection, tenant: str, job_id: str, spec: JobSpec) -> None:
    """Keeps a prepared job's questions as a set, if it has any."""
    content = questions_of(spec, await preparations.questions_of_job(connection, tenant, job_id))
    if content:
        await preparations.store_question_set(connection, tenant, set_id(content), None, content)


async def keep_questions(
    engine: AsyncEngine,
    tenant: str,
    name: str | None,
    questions: Mapping[str, Mapping[str, list[str]]],
    tasks: Mapping[str, GymTask],
) -> dict[str, Any]:
    """Keeps questions as a set and returns it in the HTTP contract's form; the first name that it got stays.

    Raises:
        InvalidJobError: If a task is unknown or named twice, or a list is empty.
    """
    content = _normalised(questions, tasks)
    async with engine.begin() as connection:
        await preparations.store_question_set(connection, tenant, set_id(content), name, content)
    return await find_question_set(engine, tenant, set_id(content))


async def find_question_set(engine: AsyncEngine, tenant: str, id_: str) -> dict[str, Any]:
    """A question set in the HTTP contract's form.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        found = await preparations.question_set(connection, tenant, id_)
    if found is None:
        raise NotFoundError(id_)
    return {"id": id_, "object": "question_set", "name": found[0], "questions": found[1]}


def _normalised(questions: Mapping[str, Mapping[str, list[str]]], tasks: Mapping[str, GymTask]) -> Questions:
    """The questions under the tasks' ids, so that the same questions are the same set however they name their tasks."""
    errors: list[FieldError] = []
    found: Questions = {}
    for who, by_task in questions.items():
        of_persona = found.setdefault(who.strip(), {})
        for name, asked in by_task.items():
            pointer = f"/questions/{escape_pointer(who)}/{escape_pointer(name)}"
            task = task_named(tasks.values(), name)
            if task is None:
                errors.append(
                    FieldError(pointer, f"no PersonaGym task is called {name!r}; known: {', '.join(tasks)}")
                )
            elif task.id in of_persona:
                errors.append(FieldError(pointer, f"task {task.id!r} is named more than once"))
            elif not asked:
                errors.append(FieldError(pointer, "give at least one question"))
            else:
                of_persona[task.id] = list(asked)
    if errors:
        raise InvalidJobError(errors)
    return found
