"""keep rereads"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261202_1000'
down_revision: str | None = '20261202_0656'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the columns for replies that were read again."""
    op.add_column('jobs', sa.Column('reader', sa.Text(), nullable=True))
    op.add_column('jobs', sa.Column('rereads', sa.Integer(), server_default='0', nullable=False))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column('jobs', 'rereads')
    op.drop_column('jobs', 'reader')
