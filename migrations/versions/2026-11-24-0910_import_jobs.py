"""import jobs"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = '20261201_0910'
down_revision: str | None = '20261201_0908'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column(
        'jobs', sa.Column('imported_from', postgresql.JSONB(none_as_null=True), nullable=True)
    )


def downgrade() -> None:
    """Takes it back."""
    op.drop_column('jobs', 'imported_from')
