"""A further migration, that no release has: it adds a column to every table that is written while a job runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from app.db.migration.migrate import alembic_config, repeated
from tests.faults.program import PROJECT

SCRIPT = '''"""a scratch migration"""
import sqlalchemy as sa
from alembic import op

revision = "5c4a7c400001"
down_revision = "{head}"
branch_labels = depends_on = None
TABLES = ("jobs", "shards", "responses", "verdicts", "grades", "preparations", "calls", "shard_usage")


def upgrade():
    for table in TABLES:
        op.add_column(table, sa.Column("scratch", sa.Integer(), server_default="7", nullable=False))


def downgrade():
    for table in TABLES:
        op.drop_column(table, "scratch")
'''


@dataclass(frozen=True)
class ScratchMigration:
    """Forth and back, each again when Postgres ends it for the locks of the job's transactions, as `assay migrate` does."""

    config: Config
    head: str

    def upgrade(self) -> None:
        repeated(lambda: command.upgrade(self.config, "head"), print)

    def downgrade(self) -> None:
        repeated(lambda: command.downgrade(self.config, self.head), print)


@contextmanager
def scratch_migration(database_url: str, directory: Path) -> Iterator[ScratchMigration]:
    """The migrations of this tree, and one more."""
    config = alembic_config(database_url)
    head = ScriptDirectory.from_config(config).get_current_head()
    assert head is not None
    (directory / "scratch.py").write_text(SCRIPT.format(head=head), encoding="ascii")
    config.set_main_option("path_separator", "os")
    config.set_main_option("version_locations", f"{PROJECT / 'migrations' / 'versions'}:{directory}")
    yield ScratchMigration(config, head)
