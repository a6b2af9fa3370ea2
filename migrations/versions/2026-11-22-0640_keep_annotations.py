"""keep annotations, and what people are shown to annotate"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
revision: str = '20261122_0640'
down_revision: str | None = '20261122_0630'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table('annotations',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('annotator', sa.Text(), nullable=False),
    sa.Column('dimension', sa.Text(), nullable=True),
    sa.Column('cell', sa.Integer(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('unit', sa.SmallInteger(), nullable=True),
    sa.Column('other_cell', sa.Integer(), nullable=True),
    sa.Column('other_run', sa.SmallInteger(), nullable=True),
    sa.Column('other_item', sa.SmallInteger(), nullable=True),
    sa.Column('other_unit', sa.SmallInteger(), nullable=True),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('score', sa.SmallInteger(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.CheckConstraint("answer IN ('scored', 'not_applicable', 'first', 'second', 'equal')", name=op.f('ck_annotations_answer')),
    sa.CheckConstraint("(answer = 'scored') = (score IS NOT NULL)", name=op.f('ck_annotations_score')),
    sa.CheckConstraint("(answer IN ('first', 'second', 'equal')) = (other_cell IS NOT NULL)", name=op.f('ck_annotations_pair')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_annotations_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_annotations'))
    )
    op.create_index('ix_annotations_subject', 'annotations', ['job_id', 'annotator', 'dimension', 'cell', 'run', 'item', 'unit', 'other_cell', 'other_run', 'other_item', 'other_unit'], unique=True, postgresql_nulls_not_distinct=True)
    op.create_table('labelling_rounds',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('dimension', sa.Text(), nullable=False),
    sa.Column('size', sa.Integer(), nullable=False),
    sa.Column('seed', sa.BigInteger(), nullable=False),
    sa.Column('things', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('strata', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.CheckConstraint("kind IN ('sentences', 'pairs')", name=op.f('ck_labelling_rounds_kind')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_labelling_rounds_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_labelling_rounds'))
    )
    op.create_index('ix_labelling_rounds_draw', 'labelling_rounds', ['job_id', 'kind', 'dimension', 'size', 'seed'], unique=True)


def downgrade() -> None:
    """Takes it back."""
    op.drop_table('labelling_rounds')
    op.drop_table('annotations')
