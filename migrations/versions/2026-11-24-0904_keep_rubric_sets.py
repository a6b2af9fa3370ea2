"""keep rubric sets"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.rls import enable_rls

revision: str = '20261130_0904'
down_revision: str | None = '20261130_0859'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'rubric_sets',
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('name', sa.Text(), nullable=True),
        sa.Column('content', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('posted', sa.Boolean(), nullable=False),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.PrimaryKeyConstraint('tenant', 'id', name=op.f('pk_rubric_sets')),
    )
    op.create_index('ix_rubric_sets_newest', 'rubric_sets', ['tenant', 'created_at', 'id'], unique=False)
    enable_rls('rubric_sets')


def downgrade() -> None:
    """Takes it back, with all rubric sets."""
    op.drop_table('rubric_sets')
