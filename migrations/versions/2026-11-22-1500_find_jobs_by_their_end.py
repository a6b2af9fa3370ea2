"""find jobs by their end"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261122_1500'
down_revision: str | None = '20261122_1000'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_index('ix_jobs_finished_at', 'jobs', ['finished_at'], unique=False, postgresql_where=sa.text('finished_at IS NOT NULL'))


def downgrade() -> None:
    """Takes it back."""
    op.drop_index('ix_jobs_finished_at', table_name='jobs', postgresql_where=sa.text('finished_at IS NOT NULL'))
