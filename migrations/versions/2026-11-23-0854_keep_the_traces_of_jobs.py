"""keep the traces of jobs"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261129_0500'
down_revision: str | None = '20261126_0210'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('jobs', sa.Column('traceparent', sa.Text(), nullable=True))


def downgrade() -> None:
    """Takes it back."""
    op.drop_column('jobs', 'traceparent')
