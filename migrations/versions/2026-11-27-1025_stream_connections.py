"""stream connections"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "20261202_1025"
down_revision: str | None = "20261202_1024"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Add whether calls of a connection ask for event streams."""
    op.add_column(
        "connections", sa.Column("stream", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("connections", "stream")
