"""What a worker and the sweeper ask of the database before they work."""

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.start import UnusableDatabaseError, check_database
from app.settings import Settings, StartError


async def refuse_unusable_database(engine: AsyncEngine, settings: Settings) -> None:
    """Does not start a process that can't work with the database as it is; one whose database is away starts, and waits.

    Raises:
        StartError: The tables are missing or older than this release, or a connection pooler refuses us.
    """
    try:
        state = await check_database(engine, settings.database_pooler)
    except UnusableDatabaseError as error:
        raise StartError(str(error)) from error
    if state is not None and not state.usable:
        raise StartError(f"the database is {state.value}")
