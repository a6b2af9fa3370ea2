"""pause tenants"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261205_1430'
down_revision: str | None = '20261205_1420'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the time since which the operator has a tenant paused."""
    op.add_column('tenant_limits', sa.Column('paused_at', sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('tenant_limits', 'paused_at')
