"""share jobs"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.rls import enable_rls

revision: str = '20261129_0930'
down_revision: str | None = '20261129_0900'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'share_links',
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('job_id', sa.Text(), nullable=False),
        sa.Column('digest', sa.LargeBinary(), nullable=False),
        sa.Column('description', sa.Text(), nullable=True),
        sa.Column('responses', sa.Boolean(), nullable=False),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
        sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ['job_id'], ['jobs.id'], name=op.f('fk_share_links_job_id_jobs'), ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_share_links')),
        sa.UniqueConstraint('digest', name=op.f('uq_share_links_digest')),
    )
    op.create_index('ix_share_links_job_id', 'share_links', ['job_id'], unique=False)
    enable_rls('share_links')


def downgrade() -> None:
    """Takes it back, with all links in it."""
    op.drop_table('share_links')
