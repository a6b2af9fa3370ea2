"""What a process asks of the database before it works."""

import structlog
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import Pooler
from app.db.health import is_away
from app.db.reasons import POOLER, reason
from app.db.revision import SchemaState, schema_state

log = structlog.get_logger(__name__)

_LIMITS = (
    "SELECT pg_backend_pid(), current_user, current_setting('lock_timeout') = '0'"
    " OR current_setting('idle_in_transaction_session_timeout') = '0'"
)


class UnusableDatabaseError(Exception):
    """No process can work with this database as it is; the message says why, and what to do."""


async def check_database(engine: AsyncEngine, pooler: Pooler) -> SchemaState | None:
    """How the database's tables stand to this release; warns of what a connection pooler takes away.

    Args:
        engine: Of the tables' owner.
        pooler: What the operator says that stands before the database.

    Returns:
        ``None`` where the database is away for now.

    Raises:
        UnusableDatabaseError: A pooler refuses us.
    """
    try:
        await _warn_of_pooler(engine, pooler)
        return await schema_state(engine)
    except Exception as error:
        why = reason(error)
        if POOLER in why:
            raise UnusableDatabaseError(f"the database can't be used: {why}") from error
        if not is_away(error):
            raise
        log.warning("part can't be used", part="database", state=f"unreachable: {why}")
        return None


async def _warn_of_pooler(engine: AsyncEngine, pooler: Pooler) -> None:
    async with engine.connect() as connection:
        server, role, unlimited = (await connection.execute(text(_LIMITS))).one()
        driver = (await connection.get_raw_connection()).driver_connection
        told = driver.info.backend_pid if driver is not None else server
    if pooler == "none" and told != server:  # a pooler invents what it tells its clients
        log.warning("connection pooler", reason=f"{POOLER}: prepared statements may get lost")
    elif pooler != "none" and unlimited:
        log.warning(
            "connection pooler",
            reason="it takes none of our time limits, and the role has none: a machine that vanishes keeps its locks",
            remedy=f"ALTER ROLE {role} SET lock_timeout = '30s';"
            f" ALTER ROLE {role} SET idle_in_transaction_session_timeout = '60s'",
        )
