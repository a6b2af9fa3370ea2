"""What of a migration takes time with the rows, done after it beside the work that goes on.

A migration's locks last until it ends, so it adds checks without reading the rows (``NOT VALID``) and leaves new indexes of tables
with many rows to what the tables declare. Here the checks are validated and the indexes built, by statements that
hold up neither readers nor writers. Each is found by what the database lacks, so that whatever was interrupted is taken up again.
"""

from collections.abc import Iterator

from sqlalchemy import Connection, Dialect, create_engine, text
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, Index

from app import clock
from app.db.engine import UNPREPARED
from app.db.migration.all_tables import METADATA

FINISHING_LOCK = 0x61737362
"""Advisory lock: of two machines one finishes, and the other one waits."""
TURN_SECONDS = 0.2

_UNCHECKED = text(
    "SELECT conrelid::regclass::text, quote_ident(conname) FROM pg_constraint"
    " WHERE contype = 'c' AND NOT convalidated AND connamespace = current_schema()::regnamespace ORDER BY 1, 2"
)
_INDEXES = text(
    "SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
    " WHERE relnamespace = current_schema()::regnamespace"
)


def finish(database_url: str) -> None:
    """Validates and builds what a database on this release's revision lacks; safe to run from several machines at once.

    It waits for transactions that began before it.

    Raises:
        DBAPIError: If it can't be done now.
    """
    engine = create_engine(database_url, poolclass=NullPool, connect_args=dict(UNPREPARED))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not list(_statements(connection)):
            return
        with engine.connect() as turn:
            _take(turn)
            for statement in list(_statements(connection)):
                connection.execute(text(statement))


def _take(turn: Connection) -> None:
    """Waits for the lock, which a transaction holds then.

    Without a snapshot, for whose end an index would wait: so it does not wait within a statement, nor give one parameters, whose
    portal would be kept until the transaction's end.
    """
    while not turn.scalar(text(f"SELECT pg_try_advisory_xact_lock({FINISHING_LOCK})")):
        turn.rollback()
        clock.sleep(TURN_SECONDS)


def _statements(connection: Connection) -> Iterator[str]:
    for table, name in connection.execute(_UNCHECKED):
        yield f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}"
    valid = {str(name): bool(is_valid) for name, is_valid in connection.execute(_INDEXES)}
    for index in sorted(_declared(), key=lambda index: str(index.name)):
        if not valid.get(str(index.name), False):
            if index.name in valid:  # whoever built it was interrupted
                yield f'DROP INDEX CONCURRENTLY "{index.name}"'
            yield _built(index, connection.dialect)


def _declared() -> Iterator[Index]:
    for table in METADATA.tables.values():
        yield from table.indexes


def _built(index: Index, dialect: Dialect) -> str:
    statement = str(CreateIndex(index).compile(dialect=dialect))
    return statement.replace("INDEX", "INDEX CONCURRENTLY", 1)
