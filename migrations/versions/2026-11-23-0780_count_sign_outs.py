"""count sign-outs"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261123_0780'
down_revision: str | None = '20261123_0740'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('api_keys', sa.Column('sign_outs', sa.Integer(), server_default=sa.text('0'), nullable=False))


def downgrade() -> None:
    """Takes it back."""
    op.drop_column('api_keys', 'sign_outs')
