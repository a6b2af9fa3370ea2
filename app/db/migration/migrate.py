"""Brings a database's tables to the revision that a release needs, or back to an earlier one."""

from collections.abc import Callable
from typing import TypeVar

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.util import CommandError
from psycopg.errors import DeadlockDetected, InsufficientPrivilege, InvalidSchemaName, LockNotAvailable
from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from app import clock
from app.db.engine import UNPREPARED
from app.db.health import is_away
from app.db.migration.backfill import finish
from app.db.migration.service_role import admit_service
from app.db.reasons import reason
from app.db.revision import revisions
from app.db.row_level_security import install_rls

LOCK_SECONDS = 15
"""How long a migration waits for a table's lock. Whoever comes after it waits too: rather fail, with nothing changed, and try again."""
ATTEMPTS = 8
"""How often a migration is tried that meets locks of a running service; with the pauses between about five minutes."""
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0

Told = Callable[[str], None]
Result = TypeVar("Result")


class MigrationError(Exception):
    """The tables can't be migrated now; the message says why."""


def alembic_config(database_url: str) -> Config:
    """Alembic's configuration for a database, wherever the migrations are installed."""
    config = Config()
    config.set_main_option("script_location", "migrations:")
    config.set_main_option("sqlalchemy.url", database_url.replace("%", "%%"))
    return config


def upgrade(database_url: str, *, service_url: str | None = None, tell: Told = lambda _: None) -> str | None:
    """Applies every migration that the database lacks, and has it keep tenants apart. Safe to run from several machines at once.

    Args:
        database_url: ``postgresql+psycopg://…`` of the tables' owner.
        service_url: As whom the services connect, if not by the same URL.
        tell: Is given a line for each attempt that is repeated.

    Returns:
        What is left for somebody else to do before services can connect and tenants are kept apart; see :func:`app.db.migration.service_role.admit_service`.

    Raises:
        MigrationError: If the database is away or busy, refuses, or was migrated by a later release, or a URL names nobody.
    """
    repeated(lambda: command.upgrade(alembic_config(database_url), "head"), tell)
    repeated(lambda: finish(database_url), tell)
    if service_url is None or service_url == database_url:
        return repeated(lambda: install_rls(database_url), tell)
    if make_url(service_url).username is None:
        raise MigrationError("DATABASE_URL names no user to grant access to the tables")
    return repeated(lambda: admit_service(database_url, service_url), tell)


def migrate_to(database_url: str, revision: str, *, tell: Told = lambda _: None) -> None:
    """Brings the tables to one revision of this release, forward or back. Going back removes what later migrations added, rows included.

    Args:
        database_url: ``postgresql+psycopg://…``.
        revision: One of :func:`app.db.revision.revisions`.
        tell: Is given a line for each attempt that is repeated.

    Raises:
        MigrationError: As :func:`upgrade`, or if there is no such revision.
    """
    known = revisions()
    if revision not in known:
        raise MigrationError(f"this release has no revision {revision}; its revisions: {', '.join(known)}")
    config = alembic_config(database_url)
    here = repeated(lambda: current_revision(database_url), tell)
    back = here in known and known.index(here) > known.index(revision)
    move = command.downgrade if back else command.upgrade
    repeated(lambda: move(config, revision), tell)
    if revision == known[-1]:
        repeated(lambda: finish(database_url), tell)


def current_revision(database_url: str) -> str | None:
    """The revision of a database's tables; ``None`` where there are none."""
    engine = create_engine(database_url, poolclass=NullPool, connect_args=dict(UNPREPARED))
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def repeated(act: Callable[[], Result], tell: Told) -> Result:
    """What an act returns, tried again while transactions of a running service are in its way: nothing of it is done before.

    Raises:
        MigrationError: It can't be done now.
    """
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return act()
        except CommandError as error:
            raise MigrationError(f"this release cannot migrate the database: {error}") from error
        except DBAPIError as error:
            if not isinstance(error.orig, DeadlockDetected | LockNotAvailable) or attempt == ATTEMPTS:
                raise _told(error) from error
            tell(
                f"attempt {attempt} of {ATTEMPTS}: {reason(error)}; nothing has changed, trying again in {pause:g} s"
            )
            clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
    raise AssertionError("the last attempt returns or raises")


def _told(error: DBAPIError) -> Exception:
    """An error as an operator reads it; one that is nobody's but ours stays as it is."""
    first = next(iter(str(error.orig).splitlines()), reason(error))
    if isinstance(error.orig, InsufficientPrivilege | InvalidSchemaName):
        return MigrationError(
            f"the database refuses: {first}. Have its owner or a superuser run"
            " `GRANT CREATE, USAGE ON SCHEMA public TO` the user of DATABASE_URL, then migrate again"
        )
    return MigrationError(f"the database can't be used: {first}") if is_away(error) else error


def check(database_url: str) -> None:
    """Compares the migrated database with the tables in code.

    Raises:
        alembic.util.exc.AutogenerateDiffsDetected: If they differ.
    """
    command.check(alembic_config(database_url))
