"""call in batches"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261122_1000'
down_revision: str | None = '8b41d7e6c0fa'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table('batches',
    sa.Column('id', sa.BigInteger(), sa.Identity(always=True), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('calls', sa.Integer(), nullable=False),
    sa.Column('state', sa.Text(), server_default=sa.text("'formed'"), nullable=False),
    sa.Column('provider_id', sa.Text(), nullable=True),
    sa.Column('submissions', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('failures', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('formed_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('submitted_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('due_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('lease_expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("state IN ('formed', 'submitting', 'submitted', 'ended')", name=op.f('ck_batches_state')),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_batches_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batches')),
    sa.UniqueConstraint('connection', 'provider_id', name=op.f('uq_batches_connection'))
    )
    op.create_index('ix_batches_job_id', 'batches', ['job_id'], unique=False)
    op.create_index('ix_batches_open', 'batches', ['due_at'], unique=False, postgresql_where=sa.text("state <> 'ended'"))
    op.create_index('ix_batches_submitting', 'batches', ['connection'], unique=True, postgresql_where=sa.text("state = 'submitting'"))
    op.create_table('batch_calls',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('batch_id', sa.BigInteger(), nullable=True),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('model', sa.Text(), nullable=False),
    sa.Column('path', sa.Text(), nullable=False),
    sa.Column('custom_id', sa.Text(), nullable=False),
    sa.Column('attempt', sa.SmallInteger(), nullable=False),
    sa.Column('request', sa.Text(), nullable=False),
    sa.Column('tokens', sa.BigInteger(), nullable=False),
    sa.Column('nanos', sa.BigInteger(), nullable=False),
    sa.Column('answer', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_batch_calls_batch_id_batches'), ondelete='SET NULL'),
    sa.ForeignKeyConstraint(['shard_id'], ['shards.id'], name=op.f('fk_batch_calls_shard_id_shards'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batch_calls')),
    sa.UniqueConstraint('shard_id', 'path', name=op.f('uq_batch_calls_shard_id'))
    )
    op.create_index('ix_batch_calls_batch_id', 'batch_calls', ['batch_id', 'custom_id'], unique=False)
    op.create_index('ix_batch_calls_waiting', 'batch_calls', ['job_id', 'connection', 'model', 'id'], unique=False, postgresql_where=sa.text('batch_id IS NULL'))
    op.add_column('calls', sa.Column('batch_id', sa.BigInteger(), nullable=True))
    op.add_column('shards', sa.Column('parked', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    op.add_column('shards', sa.Column('answered', sa.Boolean(), server_default=sa.text('false'), nullable=False))


def downgrade() -> None:
    """Takes the change back."""
    op.drop_column('shards', 'answered')
    op.drop_column('shards', 'parked')
    op.drop_column('calls', 'batch_id')
    op.drop_index('ix_batch_calls_waiting', table_name='batch_calls', postgresql_where=sa.text('batch_id IS NULL'))
    op.drop_index('ix_batch_calls_batch_id', table_name='batch_calls')
    op.drop_table('batch_calls')
    op.drop_index('ix_batches_submitting', table_name='batches', postgresql_where=sa.text("state = 'submitting'"))
    op.drop_index('ix_batches_open', table_name='batches', postgresql_where=sa.text("state <> 'ended'"))
    op.drop_index('ix_batches_job_id', table_name='batches')
    op.drop_table('batches')
