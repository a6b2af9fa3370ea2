"""keep errors of second verdicts"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261202_1340'
down_revision: str | None = '20261202_1200'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the error of a judge's call or of its follow-up."""
    op.add_column('second_verdicts', sa.Column('error', sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('second_verdicts', 'error')
