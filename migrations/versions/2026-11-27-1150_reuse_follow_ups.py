"""reuse follow-ups"""

from collections.abc import Sequence

from alembic import op

revision: str = '20261202_1150'
down_revision: str | None = '20261202_1026'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

NAME = 'uq_reused_replies_cell_id'
PLACE = ['cell_id', 'run', 'item', 'unit', 'trait', 'judge']


def upgrade() -> None:
    """Allow a reused follow-up beside the reused reply before it."""
    op.drop_constraint(NAME, 'reused_replies')
    op.create_unique_constraint(
        NAME, 'reused_replies', [*PLACE, 'stage'], postgresql_nulls_not_distinct=True
    )


def downgrade() -> None:
    """Allow one reused reply for each judgement."""
    op.execute("DELETE FROM reused_replies WHERE stage = 'repairing'")
    op.drop_constraint(NAME, 'reused_replies')
    op.create_unique_constraint(NAME, 'reused_replies', PLACE, postgresql_nulls_not_distinct=True)
