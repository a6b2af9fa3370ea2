"""limit tenants"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.rls import enable_rls

revision: str = '20261126_0200'
down_revision: str | None = '20261125_0930'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'tenant_limits',
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('models', sa.ARRAY(sa.Text()), nullable=True),
        sa.Column('nanos_limit', sa.BigInteger(), nullable=True),
        sa.Column('nanos', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
        sa.PrimaryKeyConstraint('tenant', name=op.f('pk_tenant_limits')),
    )
    enable_rls('tenant_limits')
    op.add_column(
        'budgets', sa.Column('under_tenant', sa.Boolean(), server_default=sa.text('false'), nullable=False)
    )


def downgrade() -> None:
    """Takes it back, with all limits in it."""
    op.drop_column('budgets', 'under_tenant')
    op.drop_table('tenant_limits')
