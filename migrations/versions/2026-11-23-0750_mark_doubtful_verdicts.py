"""mark doubtful verdicts"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261123_0750'
down_revision: str | None = '20261123_0720'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('verdicts', sa.Column('suspicion', sa.Text(), nullable=True))
    op.add_column('grades', sa.Column('suspicion', sa.Text(), nullable=True))


def downgrade() -> None:
    """Takes it back."""
    op.drop_column('grades', 'suspicion')
    op.drop_column('verdicts', 'suspicion')
