"""name baselines"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.rls import enable_rls

revision: str = '20261201_0911'
down_revision: str | None = '20261201_0910'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'named_baselines',
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('name', sa.Text(), nullable=False),
        sa.Column('job_id', sa.Text(), nullable=False),
        sa.Column('model', sa.Text(), nullable=False),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_named_baselines_job_id_jobs')),
        sa.PrimaryKeyConstraint('tenant', 'name', name=op.f('pk_named_baselines')),
    )
    op.create_index('ix_named_baselines_job_id', 'named_baselines', ['job_id'], unique=False)
    enable_rls('named_baselines')


def downgrade() -> None:
    """Takes it back, with all baselines of one's own."""
    op.drop_table('named_baselines')
