"""keep conversations"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261202_1024'
down_revision: str | None = '20261202_1023'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the conversation of existing texts."""
    op.add_column('responses', sa.Column('conversation', sa.Text(), nullable=True))
    op.add_column('upload_records', sa.Column('conversation', sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column('upload_records', 'conversation')
    op.drop_column('responses', 'conversation')
