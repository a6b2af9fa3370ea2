"""next release: a column in each table that a job writes, checks to validate and indexes to build"""

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | None = None
depends_on: str | None = None

TABLES = ("calls", "jobs", "shards", "responses", "verdicts", "grades", "preparations", "shard_usage")
CHECKED = ("responses", "verdicts", "second_verdicts", "grades")
INDEXES = ("ix_calls_failed", "ix_budgets_under_tenant")


def upgrade() -> None:
    """Add the columns; leave the checks and indexes to what runs after the migration."""
    for table in TABLES:
        op.add_column(table, sa.Column("added", sa.Integer(), server_default="7", nullable=False))
    for table in CHECKED:
        name = f"ck_{table}_status"
        query = sa.text("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = :name")
        check = op.get_bind().scalar(query, {"name": name})
        op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {check} NOT VALID")
    _drop_indexes()


def downgrade() -> None:
    """Remove what was added."""
    for table in TABLES:
        op.drop_column(table, "added")
    _drop_indexes()


def _drop_indexes() -> None:
    for index in INDEXES:
        op.drop_index(index, if_exists=True)
