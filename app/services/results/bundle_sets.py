"""The sets of a bundle: those that its job made or named."""

import asyncio
from typing import Any

from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs import jobs
from app.db.sets import sets
from app.domain.jobs.bundle import SETS, BundleSet
from app.domain.personagym.diversity import diversity
from app.domain.sets.contract import PersonaSet, QuestionSet, RubricSet
from app.services.results.bundle_file import BundleReader, told, wrong
from app.services.sets.sets import PERSONA_SET, QUESTION_SET, RUBRIC_SET, set_id


async def sets_of(connection: AsyncConnection, tenant: str, job_id: str) -> list[BundleSet]:
    """The sets that a job made or named."""
    job = await jobs.get_job(connection, tenant, job_id)
    made = set(() if job is None else job.made_sets)
    ids = sorted(await sets.sets_of_job(connection, tenant, job_id))
    people = await sets.persona_sets(connection, tenant, ids)
    found = []
    for id_ in ids:
        kept: tuple[str | None, Any] | None
        if id_ in people:
            kept = people[id_].name, people[id_].content
        elif id_.startswith(QUESTION_SET):
            kept = await sets.question_set(connection, tenant, id_)
        else:
            kept = await sets.rubric_set(connection, tenant, id_)
        if kept is not None:
            found.append(BundleSet(id=id_, name=kept[0], content=kept[1], made=id_ in made))
    return found


async def write_sets(connection: AsyncConnection, tenant: str, job_id: str, reader: BundleReader) -> None:
    """Keeps a bundle's sets, as far as they are not here yet, and notes that the job has to do with them."""
    named = []
    for number, line in reader.lines(SETS):
        kept = await asyncio.to_thread(_read, line, number)
        await _keep(connection, tenant, kept)
        if kept.made:
            await sets.note_made(connection, tenant, job_id, kept.id, kept.id.partition("_")[0])
        else:
            named.append(kept.id)
    await sets.note_named(connection, tenant, job_id, named)


def _read(line: dict[str, Any], number: int) -> BundleSet:
    """A set whose id is that of its content, and whose content can be shown."""
    try:
        kept = BundleSet.model_validate(line)
        kind = kept.id.partition("_")[0]
        if kind == QUESTION_SET:
            QuestionSet(id=kept.id, name=kept.name, questions=kept.content)
        elif kind == PERSONA_SET:
            PersonaSet(id=kept.id, name=kept.name, personas=kept.content, built_in=False, diversity=None)
        elif kind == RUBRIC_SET:
            RubricSet.model_validate({**kept.content, "id": kept.id, "name": kept.name})
        else:
            raise wrong(SETS, f"id: no set's begins with {kind[:20]!r}", number)
    except ValidationError as error:
        raise told(f"{SETS}/{number}", error) from error
    except TypeError as error:
        raise wrong(SETS, "content: must be an object", number) from error
    if kept.id != (expected := set_id(kind, kept.content)):
        raise wrong(SETS, f"id: the content's is {expected}, not {kept.id}", number)
    return kept


async def _keep(connection: AsyncConnection, tenant: str, kept: BundleSet) -> None:
    kind = kept.id.partition("_")[0]
    if kind == QUESTION_SET:
        await sets.keep_question_set(connection, tenant, kept.id, kept.content, name=kept.name, posted=False)
    elif kind == RUBRIC_SET:
        await sets.keep_rubric_set(connection, tenant, kept.id, kept.content, name=kept.name)
    else:
        await sets.keep_persona_set(connection, tenant, kept.id, kept.content, name=kept.name, posted=False)
        descriptions = [persona["description"] for persona in kept.content]
        measured = await asyncio.to_thread(diversity, descriptions) if kept.made else None
        if measured is not None:
            await sets.store_diversity(connection, tenant, kept.id, measured.model_dump())
