"""keep unread replies"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.rls import enable_rls

revision: str = '20261202_0520'
down_revision: str | None = '20261202_0516'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the columns for repaired replies, and the table of replies that wait for their repair."""
    for table in ('verdicts', 'second_verdicts', 'grades'):
        op.add_column(table, sa.Column('unread', sa.Text(), nullable=True))
        op.add_column(table, sa.Column('repair_raw', sa.Text(), nullable=True))
    op.create_table(
        'unread_replies',
        sa.Column('cell_id', sa.BigInteger(), nullable=False),
        sa.Column('run', sa.SmallInteger(), nullable=False),
        sa.Column('path', sa.Text(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('raw', sa.Text(), nullable=False),
        sa.Column('finish_reason', sa.Text(), nullable=False),
        sa.Column('thoughts', sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ['cell_id'], ['cells.id'], name=op.f('fk_unread_replies_cell_id_cells'), ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('cell_id', 'run', 'path', name=op.f('pk_unread_replies')),
    )
    enable_rls('unread_replies')


def downgrade() -> None:
    """Drop them."""
    op.drop_table('unread_replies')
    for table in ('grades', 'second_verdicts', 'verdicts'):
        op.drop_column(table, 'repair_raw')
        op.drop_column(table, 'unread')
