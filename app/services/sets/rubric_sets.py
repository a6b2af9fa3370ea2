"""Rubric sets: immutable, named by their content; the words by which a job's tasks are asked and judged."""

from dataclasses import asdict

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.sets import sets
from app.domain.errors import InvalidJobError
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.resolve_rubrics import read_rubrics, with_rubrics
from app.domain.jobs.rubrics import RubricContent, RubricSetIn
from app.domain.sets.contract import RubricSet
from app.domain.sets.kinds import RUBRIC_SET, set_id
from app.services.long_texts import on_a_thread
from app.services.sets.sets import find_set


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


async def catalog_with_rubrics(engine: AsyncEngine, catalog: Catalog, tenant: str, id_: str) -> Catalog:
    """The catalog with the words and tasks of a rubric set; as it is if the tenant has none of that id."""
    async with engine.connect() as connection:
        found = await sets.find_set(connection, RUBRIC_SET, tenant, id_)
    return catalog if found is None else with_rubrics(catalog, RubricContent(**found.content))
