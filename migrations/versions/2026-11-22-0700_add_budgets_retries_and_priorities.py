"""add budgets, retries and priorities"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '5d0f3c7b92e4'
down_revision: str | None = 'd5f0a2c81b34'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table('budgets',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('calls_limit', sa.BigInteger(), nullable=True),
    sa.Column('tokens_limit', sa.BigInteger(), nullable=True),
    sa.Column('nanos_limit', sa.BigInteger(), nullable=True),
    sa.Column('calls', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('tokens', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('nanos', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['jobs.id'], name=op.f('fk_budgets_job_id_jobs'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('job_id', name=op.f('pk_budgets'))
    )
    op.create_table('reservations',
    sa.Column('call_id', sa.Uuid(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('shard_id', sa.BigInteger(), nullable=False),
    sa.Column('lease_token', sa.BigInteger(), nullable=False),
    sa.Column('tokens', sa.BigInteger(), nullable=False),
    sa.Column('nanos', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['job_id'], ['budgets.job_id'], name=op.f('fk_reservations_job_id_budgets'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('call_id', name=op.f('pk_reservations'))
    )
    op.create_index('ix_reservations_job_id', 'reservations', ['job_id'], unique=False)
    op.add_column('jobs', sa.Column('priority', sa.Text(), server_default=sa.text("'normal'"), nullable=False))
    op.create_check_constraint(op.f('ck_jobs_priority'), 'jobs', "priority IN ('low', 'normal', 'high')")
    op.add_column('shards', sa.Column('retries', sa.SmallInteger(), server_default=sa.text('0'), nullable=False))
    op.add_column('shards', sa.Column('attempts_before', sa.SmallInteger(), server_default=sa.text('0'), nullable=False))


def downgrade() -> None:
    """Takes it back."""
    op.drop_column('shards', 'attempts_before')
    op.drop_column('shards', 'retries')
    op.drop_constraint(op.f('ck_jobs_priority'), 'jobs', type_='check')
    op.drop_column('jobs', 'priority')
    op.drop_index('ix_reservations_job_id', table_name='reservations')
    op.drop_table('reservations')
    op.drop_table('budgets')
