"""Rubric sets: immutable, named by their content; the words by which a job's tasks are asked and judged."""

from dataclasses import asdict

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.sets import sets
from app.domain.errors import InvalidJobError
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.resolve_rubrics import read_rubrics
from app.domain.jobs.rubrics import RubricSetIn
from app.domain.sets.contract import RubricSet
from app.services.errors import NotFoundError
from app.services.long_texts import on_a_thread
from app.services.sets.sets import RUBRIC_SET, set_id


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
        await sets.keep_rubric_set(connection, tenant, id_, content, name=given.name)
    return await find_rubric_set(engine, tenant, id_)


async def find_rubric_set(engine: AsyncEngine, tenant: str, id_: str) -> RubricSet:
    """A rubric set.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        found = await sets.rubric_set(connection, tenant, id_)
    if found is None:
        raise NotFoundError(f"rubric set {id_} not found")
    return RubricSet(id=id_, name=found[0], **found[1])
