"""keep webhooks and the outbox of their messages"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
revision: str = '20261122_0630'
down_revision: str | None = '20261122_1500'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table('webhooks',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('events', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('secret', sa.Text(), nullable=False),
    sa.Column('disabled_reason', sa.Text(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.CheckConstraint("disabled_reason IN ('by_user', 'gone')", name=op.f('ck_webhooks_disabled_reason')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhooks'))
    )
    op.create_index('ix_webhooks_tenant_newest', 'webhooks', ['tenant', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False)
    op.create_table('webhook_deliveries',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('webhook_id', sa.Text(), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=True),
    sa.Column('payload', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), server_default=sa.text("'waiting'"), nullable=False),
    sa.Column('attempts', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('due_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
    sa.Column('attempted_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('http_status', sa.SmallInteger(), nullable=True),
    sa.Column('error', sa.Text(), nullable=True),
    sa.CheckConstraint("state IN ('waiting', 'delivered', 'given_up')", name=op.f('ck_webhook_deliveries_state')),
    sa.CheckConstraint("(state = 'waiting') = (ended_at IS NULL)", name=op.f('ck_webhook_deliveries_ended_at')),
    sa.ForeignKeyConstraint(['webhook_id'], ['webhooks.id'], name=op.f('fk_webhook_deliveries_webhook_id_webhooks'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_webhook_deliveries'))
    )
    op.create_index('ix_webhook_deliveries_newest', 'webhook_deliveries', ['webhook_id', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False)
    op.create_index('ix_webhook_deliveries_due', 'webhook_deliveries', ['due_at'], unique=False, postgresql_where=sa.text("state = 'waiting'"))
    op.create_index('ix_webhook_deliveries_ended', 'webhook_deliveries', ['ended_at'], unique=False, postgresql_where=sa.text('ended_at IS NOT NULL'))


def downgrade() -> None:
    """Takes it back."""
    op.drop_table('webhook_deliveries')
    op.drop_table('webhooks')
