"""How Alembic reaches the database and what it compares it with."""

from alembic import context
from sqlalchemy import create_engine, pool, text

from app.db import (  # noqa: F401 - declare their tables
    annotation_tables,
    batch_tables,
    connection_tables,
    key_tables,
    migrate,
    reply_tables,
    set_tables,
    webhook_tables,
)
from app.db.engine import UNPREPARED
from app.db.tables import Base

MIGRATION_LOCK = 0x61737361
"""Advisory lock: two machines that start at once migrate one after the other."""


def run() -> None:
    """Runs the migrations in one transaction."""
    url = context.config.get_main_option("sqlalchemy.url")
    if not url:
        raise SystemExit("no database: set sqlalchemy.url, or use `assay migrate`")
    engine = create_engine(url, poolclass=pool.NullPool, connect_args=dict(UNPREPARED))
    with engine.connect() as connection:
        context.configure(connection=connection, target_metadata=Base.metadata, compare_server_default=True)
        with context.begin_transaction():
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            connection.execute(text(f"SET LOCAL lock_timeout = '{migrate.LOCK_SECONDS}s'"))
            context.run_migrations()


run()
