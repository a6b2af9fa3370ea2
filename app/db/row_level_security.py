"""Row-level security: Postgres's own separation of tenants.

The first wall is that every statement names its tenant. Should one forget to, what serves clients still sees and writes
rows of one tenant only, because it works through an engine that stands behind this wall: each of its transactions
takes on a role that owns no table, and names the tenant of the request. Both are settings of the transaction alone, so
that nothing of them is left on a connection that goes back to its pool, whatever has ended the transaction, and
whatever pools connections between us and Postgres.

Workers, the sweeper and migrations stand outside: they act for all tenants, as the tables' owner or as the services' role.

It is a wall against our own mistakes. Anyone who can send their own SQL can leave the role.
"""

import contextvars
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

import psycopg
import structlog
from psycopg import sql
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import ClauseElement, Connection, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, DisconnectionError, ProgrammingError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from app import clock
from app.db.engine import STATEMENT_SECONDS, UNPREPARED, Pooler, connect

log = structlog.get_logger(__name__)

SETTING = "assay.tenant"
"""Names the tenant of a transaction; empty for nobody, who sees no row."""

_ROLE_NAME = "left({user}, 50) || '_tenant'"
"""Of the name of who connects, so that two installations on one server share no role: who holds it reads whatever it may read."""

SERVICE_POLICY = "service"
"""Lets a role that owns no table act for all tenants, as long as it takes on no other; see :mod:`app.db.migration.service_role`."""

_ROLE = "role of row-level security"

_HELD = (
    "pg_has_role({user}, r.oid,"
    " CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)"
)

_FIND_ROLE = (
    f"SELECT (SELECT rolname FROM pg_roles r WHERE rolname = {_ROLE_NAME} AND NOT rolsuper AND NOT rolbypassrls"
    f" AND {_HELD} AND has_table_privilege(r.oid, to_regclass('jobs'), 'SELECT')),"
    " (SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass('jobs')),"
    " row_security_active(to_regclass('jobs')) AND NOT EXISTS (SELECT FROM pg_policies WHERE tablename = 'jobs'"
    f" AND schemaname = current_schema() AND policyname = '{SERVICE_POLICY}' AND current_user = ANY(roles))"
).format(user="current_user")

_ROLE_STATE = (
    f"SELECT quote_ident({_ROLE_NAME}), quote_ident({{user}}), r.oid IS NOT NULL, coalesce({_HELD}, false)"
    f" FROM (SELECT {_ROLE_NAME} AS name) wanted LEFT JOIN pg_roles r ON rolname = name"
).format(user="coalesce(CAST(:service AS name), current_user)")

_WALLED_TABLES = (
    "SELECT quote_ident(relname) FROM pg_class WHERE relrowsecurity AND relkind = 'r'"
    " AND relnamespace = current_schema()::regnamespace ORDER BY 1"
)

_TAKE_ON = f"SELECT set_config('role', %s, true), set_config('{SETTING}', %s, true)"
"""What :func:`_begin_as` says after BEGIN, in one statement, which is parsed once."""

_DIALECT = make_url("postgresql+psycopg://").get_dialect()

_LOOK_AGAIN_SECONDS = 10.0
"""A connection that found no row-level security is made anew after so long: it may be older than the migration that switched it on."""

_LOOKED = "looked for row-level security at"

ROLES_LOCK = 0x6173726C
"""Advisory lock: of two machines that start at once, one makes the roles."""

_Driver = psycopg.AsyncConnection[tuple[Any, ...]]

_tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="")


def act_for(tenant: str) -> None:
    """Names the tenant for whom this task, and what it starts from now on, reads and writes; empty for nobody."""
    _tenant.set(tenant)


class TenantEngine:
    """An engine whose transactions see the rows of one tenant, the one that :func:`act_for` has named.

    Its transactions are begun by us, by the same message that takes on the role; so the wall costs no message. A
    connection on which every statement would be a transaction of its own has one transaction for all of them here.

    Attributes:
        engine: The engine.
        stands: Whether the last connection that was made has found the wall; ``None`` before there was one.
    """

    def __init__(
        self, database_url: str, *, pool_size: int, application_name: str, pooler: Pooler = "none"
    ) -> None:
        self.engine: AsyncEngine = connect(
            database_url,
            pool_size=pool_size,
            application_name=application_name,
            begins_itself=True,
            pooler=pooler,
            statement_seconds=STATEMENT_SECONDS,
        )
        self.stands: bool | None = None
        event.listen(self.engine.sync_engine, "connect", self._look_for_role)
        event.listen(self.engine.sync_engine, "checkout", self._look_again)
        event.listen(self.engine.sync_engine, "begin", self._begin)

    def _look_for_role(self, connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute(_FIND_ROLE)
        role, has_policies, subject = cursor.fetchone() or (None, None, None)
        cursor.close()
        connection.rollback()
        entry.info[_ROLE] = role
        stands = subject or (role is not None and has_policies)
        if not stands and self.stands is not False:
            log.warning(
                "the database keeps no tenants apart; their statements alone do. See docs/operations.md, Tenants"
            )
        self.stands = bool(stands)
        entry.info[_LOOKED] = None if stands else clock.monotonic()

    @staticmethod
    def _look_again(_connection: DBAPIConnection, entry: ConnectionPoolEntry, _proxy: object) -> None:
        looked = entry.info.get(_LOOKED)
        if looked is not None and clock.monotonic() - looked >= _LOOK_AGAIN_SECONDS:
            raise DisconnectionError("row-level security may be on by now")

    @staticmethod
    def _begin(connection: Connection) -> None:
        # A transaction with an isolation level of its own is begun by the driver.
        begun = not connection.connection.dbapi_connection.autocommit  # type: ignore[union-attr] # psycopg's
        connection.exec_driver_sql(
            _begin_as(connection.info.get(_ROLE), _tenant.get(), begun=begun),
            execution_options={"no_parameters": True},
        )


@lru_cache(maxsize=1024)
def _begin_as(role: str | None, tenant: str, *, begun: bool) -> str:
    """What begins a transaction under a role for a tenant: several statements in one message."""
    parts: list[sql.Composable] = [] if begun else [sql.SQL("BEGIN")]
    if role is not None:
        parts.append(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(role)))
    parts.append(sql.SQL("SET LOCAL {} = {}").format(sql.SQL(SETTING), sql.Literal(tenant)))
    return sql.SQL("; ").join(parts).as_string(None)


def as_question(statement: ClauseElement) -> str:
    """A statement as :func:`ask` takes it."""
    return str(statement.compile(dialect=_DIALECT()))


async def ask(
    engine: AsyncEngine, question: str, parameters: Mapping[str, object]
) -> Sequence[Sequence[Any]]:
    """The rows that a single statement finds, in a transaction of its own.

    Behind the wall, what takes on the role and the statement are sent together and waited for once: on a busy machine it is the waiting
    that takes time, for the database each time, and for a core afterwards.

    Args:
        engine: Where to ask.
        question: The statement in the driver's form, which :func:`as_question` makes.
        parameters: Its parameters.

    Raises:
        DBAPIError: As of a connection's ``execute``.
    """
    async with engine.connect() as connection:
        if _ROLE not in connection.info:  # without row-level security
            return (await connection.exec_driver_sql(question, parameters)).all()
        borrowed = await connection.get_raw_connection()
        driver = cast("_Driver", borrowed.driver_connection)
        try:
            return await _in_one_message(driver, connection.info[_ROLE], question, parameters)
        except psycopg.Error as error:
            lost = driver.closed
            if lost:
                await connection.invalidate(error)
            raise DBAPIError.instance(
                question, None, error, psycopg.Error, connection_invalidated=lost, dialect=engine.dialect
            ) from error
        except BaseException:  # nobody knows what the connection was in the middle of
            await connection.invalidate()
            raise


async def _in_one_message(
    driver: _Driver, role: str | None, question: str, parameters: Mapping[str, object]
) -> list[tuple[Any, ...]]:
    async with driver.pipeline():  # without a BEGIN, all that is sent before its end is one transaction
        await driver.execute(_TAKE_ON, (role, _tenant.get()))
        found = await driver.execute(question, parameters)
    return await found.fetchall()


def install_rls(database_url: str, service: str | None = None) -> str | None:
    """Makes the role under which clients are served, and lets it at the tables; what is there already stays.

    Args:
        database_url: ``postgresql+psycopg://…`` of the tables' owner.
        service: The role that takes it on, where that is not the owner.

    Returns:
        What somebody has to tell Postgres who may make roles, if the owner may not; ``None`` if the wall stands.
    """
    engine = create_engine(database_url, poolclass=NullPool, connect_args=dict(UNPREPARED))
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ROLES_LOCK})
        role, user, exists, held = connection.execute(text(_ROLE_STATE), {"service": service}).one()
        statements = [] if exists else [f"CREATE ROLE {role} NOLOGIN"]
        if not held:
            statements.append(f"GRANT {role} TO {user}")
        try:
            with connection.begin_nested():
                for statement in statements:
                    connection.exec_driver_sql(statement)
        except ProgrammingError as error:
            if not isinstance(error.orig, InsufficientPrivilege):
                raise
            return "; ".join(statements)
        connection.exec_driver_sql(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tenant_tables(connection)} TO {role}"
        )
    return None


def tenant_tables(connection: Connection) -> str:
    """The tables that are kept apart, as a statement names them."""
    return ", ".join(connection.execute(text(_WALLED_TABLES)).scalars())
