"""give batches up at a set time"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261205_1420'
down_revision: str | None = '20261203_1415'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the time at which an ending job no longer waits for its batch."""
    op.add_column('batches', sa.Column('give_up_at', sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('batches', 'give_up_at')
