"""count resumptions"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261202_0656'
down_revision: str | None = '20261202_0520'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the columns for resumptions after an outage."""
    op.add_column('jobs', sa.Column('resumptions', sa.SmallInteger(), server_default='0', nullable=False))
    op.add_column('jobs', sa.Column('resumed_at', sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column('jobs', 'resumed_at')
    op.drop_column('jobs', 'resumptions')
