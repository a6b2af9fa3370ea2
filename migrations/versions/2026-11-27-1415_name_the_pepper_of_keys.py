"""name the pepper of keys"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261203_1415'
down_revision: str | None = '20261203_1400'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add the name of the pepper that a key was hashed with."""
    op.add_column('api_keys', sa.Column('pepper', sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column('api_keys', 'pepper')
