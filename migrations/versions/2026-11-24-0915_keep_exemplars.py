"""keep exemplars"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.rls import enable_rls

revision: str = '20261201_0915'
down_revision: str | None = '20261201_0911'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'exemplars',
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('set_id', sa.Text(), nullable=False),
        sa.Column('place', sa.Text(), nullable=False),
        sa.Column('key', sa.Text(), nullable=False),
        sa.Column('reasoner', sa.Text(), nullable=True),
        sa.Column('content', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.ForeignKeyConstraint(
            ['tenant', 'set_id'],
            ['question_sets.tenant', 'question_sets.id'],
            name=op.f('fk_exemplars_tenant_question_sets'),
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('tenant', 'set_id', 'place', 'key', name=op.f('pk_exemplars')),
    )
    op.create_index('ix_exemplars_key', 'exemplars', ['tenant', 'key'], unique=False)
    enable_rls('exemplars')


def downgrade() -> None:
    """Takes it back, with all kept exemplars."""
    op.drop_table('exemplars')
