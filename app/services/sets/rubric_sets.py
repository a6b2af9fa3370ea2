"""Rubric sets: immutable, named by their content; the words by which a job's tasks are asked and judged."""

from dataclasses import asdict

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.sets import sets
from app.domain.errors import InvalidJobError
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.resolve_rubrics import read_rubrics
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.sets.contract import RubricSet
from app.domain.sets.kinds import RUBRIC_SET
from app.services.long_texts import on_a_thread
from app.services.sets.sets import find_set, set_id


async def keep_rubrics(engine: AsyncEngine, catalog: Catalog, tenant: str, given: RubricSetIn) -> RubricSet:
    """Keeps a rubric set and returns it; the first name that it got stays.

    Raises:
        InvalidJobError: With one entry for each thing wrong.
    """
    read = await on_a_thread(tenant, lambda: read_rubrics(given, catalog))
    if read.errors:
        raise InvalidJobError(read.errors)
    content = asdict(read.content)
    id_ = set_id(RUBRIC_SET, content)
    async with engine.begin() as connection:
        await sets.keep_set(connection, RUBRIC_SET, tenant, id_, content, name=given.name, posted=True)
    return await find_set(engine, RUBRIC_SET, tenant, id_)
