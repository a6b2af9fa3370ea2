"""keep providers' words"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261125_0900'
down_revision: str | None = '20261124_0800'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change; ``ix_calls_failed`` is built afterwards (``app/db/migration/backfill.py``), since calls are written meanwhile."""
    op.add_column('calls', sa.Column('detail', sa.Text(), nullable=True))
    op.add_column('verdicts', sa.Column('error', sa.Text(), nullable=True))


def downgrade() -> None:
    """Takes it back."""
    op.drop_index('ix_calls_failed', table_name='calls', if_exists=True)
    op.drop_column('verdicts', 'error')
    op.drop_column('calls', 'detail')
