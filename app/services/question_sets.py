"""Question sets: immutable, named by their content, so that other models or later jobs answer the same questions."""

import hashlib
import json
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db import preparations
from app.db.preparations import StoredStep
from app.domain.spec import JobSpec

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
