"""note odd texts"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision: str = '20261202_1023'
down_revision: str | None = '20261202_1001'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

JSON = postgresql.JSONB(astext_type=sa.Text())


def upgrade() -> None:
    """Add the column of notes on texts."""
    for table in ('responses', 'upload_records'):
        op.add_column(table, sa.Column('notes', JSON, nullable=True))


def downgrade() -> None:
    """Drop it."""
    for table in ('upload_records', 'responses'):
        op.drop_column(table, 'notes')
