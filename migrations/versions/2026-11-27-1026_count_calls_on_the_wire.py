"""count calls on the wire"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261202_1026'
down_revision: str | None = '20261202_1025'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the number of calls that a shard's owner has on the wire."""
    op.add_column('shards', sa.Column('on_the_wire', sa.Integer(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('shards', 'on_the_wire')
