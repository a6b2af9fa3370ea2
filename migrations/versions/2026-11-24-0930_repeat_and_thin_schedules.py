"""repeat and thin schedules"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261201_0930'
down_revision: str | None = '20261201_0925'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def _of(*things: str) -> None:
    op.drop_constraint(op.f('ck_idempotency_keys_made'), 'idempotency_keys', type_='check')
    op.create_check_constraint(
        op.f('ck_idempotency_keys_made'),
        'idempotency_keys',
        f'num_nonnulls({", ".join(things)}) = 1',
        postgresql_not_valid=True,
    )


def upgrade() -> None:
    """Applies the change."""
    op.add_column('schedules', sa.Column('put_off_until', sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        'schedules', sa.Column('removed_usd', sa.Double(), server_default=sa.text('0'), nullable=False)
    )
    op.add_column('idempotency_keys', sa.Column('schedule_id', sa.Text(), nullable=True))
    op.create_foreign_key(
        op.f('fk_idempotency_keys_schedule_id_schedules'),
        'idempotency_keys',
        'schedules',
        ['schedule_id'],
        ['id'],
        ondelete='CASCADE',
    )
    _of('job_id', 'webhook_id', 'schedule_id')


def downgrade() -> None:
    """Takes it back, with the keys that made schedules."""
    op.execute('DELETE FROM idempotency_keys WHERE schedule_id IS NOT NULL')
    _of('job_id', 'webhook_id')
    op.drop_column('idempotency_keys', 'schedule_id')
    op.drop_column('schedules', 'removed_usd')
    op.drop_column('schedules', 'put_off_until')
