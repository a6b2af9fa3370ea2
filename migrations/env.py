"""How Alembic reaches the database and what it compares it with."""

from alembic import context
from sqlalchemy import create_engine, pool, text

from app.db.engine import UNPREPARED
from app.db.migration import migrate
from app.db.migration.all_tables import METADATA

MIGRATION_LOCK = 0x61737361
"""Advisory lock: two machines that start at once migrate one after the other."""


def run() -> None:
    """Runs the migrations in one transaction."""
    url = context.config.get_main_option("sqlalchemy.url")
    if not url:
        raise SystemExit("no database: set sqlalchemy.url, or use `assay migrate`")
    engine = create_engine(url, poolclass=pool.NullPool, connect_args=dict(UNPREPARED))
    with engine.connect() as connection:
        context.configure(connection=connection, target_metadata=METADATA, compare_server_default=True)
        with context.begin_transaction():
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            connection.execute(text(f"SET LOCAL lock_timeout = '{migrate.LOCK_SECONDS}s'"))
            context.run_migrations()


run()
