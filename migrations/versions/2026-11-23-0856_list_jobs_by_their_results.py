"""tag, annotate and archive jobs, and list them by their results"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
revision: str = '20261129_0900'
down_revision: str | None = '20261129_0600'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

LISTED = ('models', 'tasks')


def upgrade() -> None:
    """Applies the change; the sweeper fills in what the jobs that are there have."""
    op.add_column('jobs', sa.Column('tags', sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False))
    op.add_column('jobs', sa.Column('notes', sa.Text(), nullable=True))
    op.add_column('jobs', sa.Column('archived_at', sa.DateTime(timezone=True), nullable=True))
    for name in LISTED:
        op.add_column('jobs', sa.Column(name, sa.ARRAY(sa.Text()), nullable=True))
    op.add_column('jobs', sa.Column('scores', postgresql.JSONB(astext_type=sa.Text()), nullable=True))
    op.add_column('jobs', sa.Column('score', sa.Double(), nullable=True))
    op.add_column('jobs', sa.Column('usd', sa.Double(), nullable=True))
    op.add_column('jobs', sa.Column('unpriced_calls', sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Takes it back."""
    for name in ('tags', 'notes', 'archived_at', *LISTED, 'scores', 'score', 'usd', 'unpriced_calls'):
        op.drop_column('jobs', name)
