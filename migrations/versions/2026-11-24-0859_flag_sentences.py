"""flag sentences"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.rls import enable_rls

revision: str = '20261130_0859'
down_revision: str | None = '20261129_0930'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'flags',
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('job_id', sa.Text(), nullable=False),
        sa.Column('annotator', sa.Text(), nullable=False),
        sa.Column('cell', sa.Integer(), nullable=False),
        sa.Column('run', sa.SmallInteger(), nullable=False),
        sa.Column('item', sa.SmallInteger(), nullable=False),
        sa.Column('unit', sa.SmallInteger(), nullable=True),
        sa.Column('dimension', sa.Text(), nullable=True),
        sa.Column('score', sa.SmallInteger(), nullable=True),
        sa.Column('not_applicable', sa.Boolean(), nullable=False),
        sa.Column('note', sa.Text(), nullable=True),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.CheckConstraint('score IS NULL OR NOT not_applicable', name=op.f('ck_flags_score')),
        sa.ForeignKeyConstraint(
            ['job_id'], ['jobs.id'], name=op.f('fk_flags_job_id_jobs'), ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_flags')),
    )
    op.create_index(
        'ix_flags_subject',
        'flags',
        ['job_id', 'cell', 'run', 'item', 'unit', 'annotator'],
        unique=True,
        postgresql_nulls_not_distinct=True,
    )
    op.create_index('ix_flags_newest', 'flags', ['tenant', 'created_at', 'id'], unique=False)
    enable_rls('flags')


def downgrade() -> None:
    """Takes it back, with all flags in it."""
    op.drop_table('flags')
