"""keep persona sets"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
revision: str = '5e0c1b7a94d2'
down_revision: str | None = 'c7a9bd6e191d'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

KINDS = "kind IN ({}'environments', 'questions', 'exemplars')"


def upgrade() -> None:
    """Applies the change."""
    op.create_table('persona_sets',
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('content', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('diversity', postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    sa.Column('posted', sa.Boolean(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.PrimaryKeyConstraint('tenant', 'id', name=op.f('pk_persona_sets'))
    )
    op.create_index('ix_persona_sets_newest', 'persona_sets', ['tenant', 'created_at', 'id'], unique=False)
    op.create_table('job_sets',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('set_id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('made', sa.Boolean(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_job_sets_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', 'set_id', name=op.f('pk_job_sets'))
    )
    op.create_index('ix_job_sets_set_id', 'job_sets', ['tenant', 'set_id'], unique=False)
    # Nobody knows any more which of the sets that there are were posted, so all of them stay.
    op.add_column('question_sets', sa.Column('posted', sa.Boolean(), server_default=sa.true(), nullable=False))
    op.alter_column('question_sets', 'posted', server_default=None)
    op.create_index('ix_question_sets_newest', 'question_sets', ['tenant', 'created_at', 'id'], unique=False)
    op.add_column('preparations', sa.Column('dropped_by', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False))
    op.drop_constraint(op.f('ck_preparations_kind'), 'preparations', type_='check')
    op.create_check_constraint(op.f('ck_preparations_kind'), 'preparations', KINDS.format("'personas', "))
    op.add_column('shards', sa.Column('personas_planned', sa.Integer(), server_default=sa.text('0'), nullable=False))


def downgrade() -> None:
    """Takes it back."""
    op.execute("DELETE FROM jobs WHERE id IN (SELECT job_id FROM shards WHERE personas_planned > 0)")
    op.drop_column('shards', 'personas_planned')
    op.drop_constraint(op.f('ck_preparations_kind'), 'preparations', type_='check')
    op.create_check_constraint(op.f('ck_preparations_kind'), 'preparations', KINDS.format(''))
    op.drop_column('preparations', 'dropped_by')
    op.drop_index('ix_question_sets_newest', table_name='question_sets')
    op.drop_column('question_sets', 'posted')
    op.drop_index('ix_job_sets_set_id', table_name='job_sets')
    op.drop_table('job_sets')
    op.drop_index('ix_persona_sets_newest', table_name='persona_sets')
    op.drop_table('persona_sets')
