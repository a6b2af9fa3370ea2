"""judge several sentences a call"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = 'e11a4c7d2f90'
down_revision: str | None = '5d0f3c7b92e4'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table('second_verdicts',
    sa.Column('cell_id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('unit', sa.SmallInteger(), nullable=False),
    sa.Column('trait', sa.SmallInteger(), nullable=False),
    sa.Column('judge', sa.SmallInteger(), nullable=False),
    sa.Column('alone', sa.Boolean(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('score', sa.SmallInteger(), nullable=True),
    sa.Column('raw', sa.Text(), nullable=True),
    sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name=op.f('ck_second_verdicts_score')),
    sa.CheckConstraint("status IN ('scored', 'not_applicable', 'refused', 'unparsed', 'failed')", name=op.f('ck_second_verdicts_status')),
    sa.PrimaryKeyConstraint('cell_id', 'run', 'item', 'unit', 'trait', 'judge', 'alone', name=op.f('pk_second_verdicts'))
    )
    op.add_column('verdicts', sa.Column('group_size', sa.SmallInteger(), server_default=sa.text('1'), nullable=False))
    op.add_column('calls', sa.Column('last_unit', sa.SmallInteger(), nullable=True))


def downgrade() -> None:
    """Takes it back."""
    op.drop_column('calls', 'last_unit')
    op.drop_column('verdicts', 'group_size')
    op.drop_table('second_verdicts')
