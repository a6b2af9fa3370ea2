"""make webhooks once"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261123_0740'
down_revision: str | None = '20261123_0730'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('idempotency_keys', sa.Column('webhook_id', sa.Text(), nullable=True))
    op.alter_column('idempotency_keys', 'job_id', existing_type=sa.Text(), nullable=True)
    op.create_foreign_key(op.f('fk_idempotency_keys_webhook_id_webhooks'), 'idempotency_keys', 'webhooks', ['webhook_id'], ['id'], ondelete='CASCADE')
    op.create_check_constraint(op.f('ck_idempotency_keys_made'), 'idempotency_keys', 'num_nonnulls(job_id, webhook_id) = 1')


def downgrade() -> None:
    """Withdraws the change."""
    op.execute('DELETE FROM idempotency_keys WHERE job_id IS NULL')
    op.drop_constraint(op.f('ck_idempotency_keys_made'), 'idempotency_keys', type_='check')
    op.drop_constraint(op.f('fk_idempotency_keys_webhook_id_webhooks'), 'idempotency_keys', type_='foreignkey')
    op.alter_column('idempotency_keys', 'job_id', existing_type=sa.Text(), nullable=False)
    op.drop_column('idempotency_keys', 'webhook_id')
