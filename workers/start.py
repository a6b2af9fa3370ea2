"""What a worker and the sweeper have in common: what they ask of the database before they work, and their heartbeat."""

import contextlib
from collections.abc import AsyncIterator

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.start import UnusableDatabaseError, check_database
from app.settings import Settings, StartError
from app.telemetry.heartbeat import beating


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


@contextlib.asynccontextmanager
async def heartbeat(settings: Settings) -> AsyncIterator[None]:
    """Shows that the process's event loop runs, if it has been told where.

    Raises:
        StartError: The file can't be made.
    """
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(beating(settings.heartbeat_file))
        except OSError as error:
            raise StartError(f"ASSAY_HEARTBEAT_FILE: {error}") from error
        yield
