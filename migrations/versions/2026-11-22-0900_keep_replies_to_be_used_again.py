"""keep replies to be used again"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '8b41d7e6c0fa'
down_revision: str | None = 'e11a4c7d2f90'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table('replies',
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('key', sa.LargeBinary(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('shared', sa.Boolean(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), nullable=False),
    sa.Column('asked_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('text', sa.Text(), nullable=True),
    sa.Column('input_tokens', sa.Integer(), nullable=True),
    sa.Column('output_tokens', sa.Integer(), nullable=True),
    sa.Column('cached_input_tokens', sa.Integer(), nullable=True),
    sa.Column('model_snapshot', sa.Text(), nullable=True),
    sa.Column('system_fingerprint', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('tenant', 'key', name=op.f('pk_replies'))
    )
    op.create_index('ix_replies_asked_at', 'replies', ['asked_at'], unique=False)
    op.create_index('ix_replies_job_id', 'replies', ['job_id'], unique=False)
    op.create_table('reused_replies',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('stage', sa.Text(), nullable=False),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('cell_id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.SmallInteger(), nullable=False),
    sa.Column('item', sa.SmallInteger(), nullable=False),
    sa.Column('unit', sa.SmallInteger(), nullable=True),
    sa.Column('trait', sa.SmallInteger(), nullable=True),
    sa.Column('judge', sa.SmallInteger(), nullable=True),
    sa.Column('origin', sa.Text(), nullable=False),
    sa.Column('input_tokens', sa.Integer(), nullable=True),
    sa.Column('output_tokens', sa.Integer(), nullable=True),
    sa.Column('usd', sa.Double(), nullable=True),
    sa.Column('model_snapshot', sa.Text(), nullable=True),
    sa.Column('system_fingerprint', sa.Text(), nullable=True),
    sa.Column('asked_at', sa.DateTime(timezone=True), nullable=False),
    sa.CheckConstraint("origin IN ('same_job', 'other_job')", name=op.f('ck_reused_replies_origin')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_reused_replies')),
    sa.UniqueConstraint('cell_id', 'run', 'item', 'unit', 'trait', 'judge', name=op.f('uq_reused_replies_cell_id'), postgresql_nulls_not_distinct=True)
    )
    op.create_index('ix_reused_replies_shard_id', 'reused_replies', ['shard_id'], unique=False)
    op.create_table('shard_reuse',
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('stage', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('same_job', sa.Integer(), nullable=False),
    sa.Column('other_job', sa.Integer(), nullable=False),
    sa.Column('input_tokens', sa.BigInteger(), nullable=False),
    sa.Column('output_tokens', sa.BigInteger(), nullable=False),
    sa.Column('usd', sa.Double(), nullable=True),
    sa.Column('unpriced', sa.Integer(), nullable=False),
    sa.Column('oldest', sa.DateTime(timezone=True), nullable=False),
    sa.ForeignKeyConstraint(['shard_id'], ['shards.id'], name=op.f('fk_shard_reuse_shard_id_shards'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('shard_id', 'stage', 'model', name=op.f('pk_shard_reuse'))
    )


def downgrade() -> None:
    """Takes it back."""
    op.drop_table('shard_reuse')
    op.drop_index('ix_reused_replies_shard_id', table_name='reused_replies')
    op.drop_table('reused_replies')
    op.drop_index('ix_replies_job_id', table_name='replies')
    op.drop_index('ix_replies_asked_at', table_name='replies')
    op.drop_table('replies')
