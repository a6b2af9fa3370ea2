"""metadata of uploads"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = '20261201_0925'
down_revision: str | None = '20261201_0920'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column(
        'uploads',
        sa.Column(
            'file_metadata',
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'"),
            nullable=False,
        ),
    )


def downgrade() -> None:
    """Takes it back."""
    op.drop_column('uploads', 'file_metadata')
