"""Whether the database's tables are those that this release works with."""

import re
from enum import Enum
from functools import lru_cache
from importlib.resources import files

from psycopg.errors import UndefinedColumn, UndefinedTable
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

_LINE = re.compile(r"^(revision|down_revision)\b[^=]*= *(?:'(\w+)'|\"(\w+)\"|None)", re.MULTILINE)

_NUMBER = re.compile(r"\d{4}")
"""A revision's name: its number in the order of revisions."""


class SchemaState(Enum):
    """How the database's tables stand to this release; the value is what an operator reads."""

    CURRENT = "ok"
    NEWER = "newer than this release"
    BEHIND = "behind this release: run `assay migrate`"
    EMPTY = "without tables: run `assay migrate`"
    FOREIGN = "at a revision unknown to this release, which can't migrate it"

    @property
    def usable(self) -> bool:
        """Whether this release can work with them. A migration only adds, so newer tables have what it needs."""
        return self in {SchemaState.CURRENT, SchemaState.NEWER}


async def schema_state(engine: AsyncEngine) -> SchemaState:
    """Compares the database's revision with the release's.

    Args:
        engine: One that may read the table of migrations: of the tables' owner.

    Raises:
        DBAPIError: The database can't be asked.
    """
    try:
        async with engine.connect() as connection:
            found = (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar()
    except DBAPIError as error:
        if isinstance(error.orig, UndefinedTable):
            return SchemaState.EMPTY
        raise
    return state_of(found)


def state_of(found: str | None) -> SchemaState:
    """How a revision stands to this release; ``None`` for a database that was taken back to no tables."""
    if found is None:
        return SchemaState.EMPTY
    if found == revisions()[-1]:
        return SchemaState.CURRENT
    if found in revisions():
        return SchemaState.BEHIND
    return SchemaState.NEWER if _NUMBER.fullmatch(found) and found > revisions()[-1] else SchemaState.FOREIGN


def lacks_tables(error: DBAPIError) -> bool:
    """Whether an error says that a table or a column is missing."""
    return isinstance(error.orig, UndefinedTable | UndefinedColumn)


@lru_cache
def revisions() -> tuple[str, ...]:
    """The revisions of this release, the first one first.

    Read from the migrations' text: Alembic takes a third of a second to import, and each process asks this when it starts.
    """
    after: dict[str | None, str] = {}
    for file in files("migrations.versions").iterdir():
        if file.name.endswith(".py") and file.name != "__init__.py":
            said = {name: one or other or None for name, one, other in _LINE.findall(file.read_text("utf-8"))}
            after[said["down_revision"]] = str(said["revision"])
    found: list[str] = []
    while (following := after.get(found[-1] if found else None)) is not None:
        found.append(following)
    return tuple(found)
