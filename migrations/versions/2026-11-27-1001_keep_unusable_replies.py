"""keep unusable replies"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261202_1001'
down_revision: str | None = '20261202_1000'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the beginning of a reasoner's unusable reply."""
    op.add_column('preparations', sa.Column('reply', sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('preparations', 'reply')
