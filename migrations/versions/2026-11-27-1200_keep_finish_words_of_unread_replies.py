"""keep finish words of unread replies"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261202_1200'
down_revision: str | None = '20261202_1150'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the provider's word for why a reply ended."""
    op.add_column('unread_replies', sa.Column('provider_finish_reason', sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('unread_replies', 'provider_finish_reason')
