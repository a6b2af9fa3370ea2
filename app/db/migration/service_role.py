"""The role as which the API, the workers and the sweeper connect, where that is not the tables' owner.

It reads and writes rows, of all tenants as long as it does not take on the tenants' role (``app/db/row_level_security.py``), and can neither change tables
nor make any. Row-level security applies to it, so a policy of every table lets it through; COPY into a table that has policies Postgres
refuses to all but the owner, so its rows are inserted (``app/db/execution/result_rows.py``).
"""

from psycopg import sql
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import URL, Connection, create_engine, make_url, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from app.db.engine import UNPREPARED
from app.db.row_level_security import ROLES_LOCK, SERVICE_POLICY, install_rls, tenant_tables

LOCK_SECONDS = 15
"""How long a new policy waits for its table's lock; see ``migrations/env.py``."""

_STATE = text("SELECT current_user = :name, EXISTS (SELECT FROM pg_roles WHERE rolname = :name)")
_WITHOUT_POLICY = text(
    "SELECT quote_ident(relname) FROM pg_class WHERE relrowsecurity AND relkind = 'r'"
    " AND relnamespace = current_schema()::regnamespace AND NOT EXISTS (SELECT FROM pg_policy"
    " WHERE polrelid = pg_class.oid AND polname = :policy AND CAST(:name AS regrole)::oid = ANY(polroles)) ORDER BY 1"
)


def admit_service(owner_url: str, service_url: str) -> str | None:
    """Makes the services' role if it is not there, and lets it at the rows; what is there already stays.

    Args:
        owner_url: ``postgresql+psycopg://…`` of the tables' owner.
        service_url: As whom the services connect; it names the user.

    Returns:
        What somebody has to tell Postgres who may make roles, if the owner may not; ``None`` if nothing is left to do.
    """
    url = make_url(service_url)
    name = str(url.username)
    engine = create_engine(owner_url, poolclass=NullPool, connect_args=dict(UNPREPARED))
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ROLES_LOCK})
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"))
        is_owner, exists = connection.execute(_STATE, {"name": name}).one()
        if not is_owner:
            role = sql.Identifier(name).as_string()
            if not _may(connection, _login(connection, role, url, exists=exists)) and not exists:
                return f"CREATE ROLE {role} LOGIN PASSWORD '…'"
            _let_in(connection, role)
    return install_rls(owner_url, None if is_owner else name)


def _login(connection: Connection, role: str, url: URL, *, exists: bool) -> str:
    """The statement that makes the role, or gives it the password by which services connect: as Postgres keeps it, for statements may be logged."""
    password: sql.Composable = sql.SQL("")
    driver = connection.connection.driver_connection
    if url.password is not None and driver is not None:
        kept = driver.pgconn.encrypt_password(
            str(url.password).encode(), str(url.username).encode(), b"scram-sha-256"
        )
        password = sql.SQL("PASSWORD {}").format(sql.Literal(kept.decode()))
    begin = f"{'ALTER' if exists else 'CREATE'} ROLE {role} LOGIN "
    return begin + password.as_string()


def _may(connection: Connection, statement: str) -> bool:
    """Runs a statement, if the owner may."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except ProgrammingError as error:
        if not isinstance(error.orig, InsufficientPrivilege):
            raise
        return False
    return True


def _let_in(connection: Connection, role: str) -> None:
    schema = connection.scalar(text("SELECT quote_ident(current_schema())"))
    connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    connection.exec_driver_sql(f"GRANT SELECT ON alembic_version TO {role}")
    connection.exec_driver_sql(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tenant_tables(connection)} TO {role}"
    )
    for table in (
        connection.execute(_WITHOUT_POLICY, {"policy": SERVICE_POLICY, "name": role}).scalars().all()
    ):
        connection.exec_driver_sql(f"DROP POLICY IF EXISTS {SERVICE_POLICY} ON {table}")
        connection.exec_driver_sql(f"CREATE POLICY {SERVICE_POLICY} ON {table} TO {role} USING (true)")
