"""keep exceeded bounds"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.rls import enable_rls

revision: str = '20261203_1400'
down_revision: str | None = '20261202_1340'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the models that billed calls beyond their reservation."""
    op.add_column('budgets', sa.Column('exceeded', sa.Integer(), server_default='0', nullable=False))
    op.add_column('reservations', sa.Column('model', sa.Text(), server_default='', nullable=False))
    op.add_column('reservations', sa.Column('alone', sa.Boolean(), server_default='false', nullable=False))
    op.create_table(
        'exceeded_bounds',
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('model', sa.Text(), nullable=False),
        sa.Column('tokens', sa.BigInteger(), nullable=False),
        sa.Column('nanos', sa.BigInteger(), nullable=False),
        sa.Column('repeats', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('tenant', 'model', name=op.f('pk_exceeded_bounds')),
    )
    enable_rls('exceeded_bounds')


def downgrade() -> None:
    """Drop them."""
    op.drop_table('exceeded_bounds')
    op.drop_column('reservations', 'alone')
    op.drop_column('reservations', 'model')
    op.drop_column('budgets', 'exceeded')
