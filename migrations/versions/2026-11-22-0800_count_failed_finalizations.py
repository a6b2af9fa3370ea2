"""count failed finalizations"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = 'd5f0a2c81b34'
down_revision: str | None = '5e0c1b7a94d2'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('jobs', sa.Column('finalize_failures', sa.SmallInteger(), server_default='0', nullable=False))


def downgrade() -> None:
    """Takes the change back."""
    op.drop_column('jobs', 'finalize_failures')
