"""keep warnings"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = '20261202_0516'
down_revision: str | None = '20261201_0932'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the column for a job's warnings."""
    op.add_column('jobs', sa.Column('warnings', postgresql.JSONB(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('jobs', 'warnings')
