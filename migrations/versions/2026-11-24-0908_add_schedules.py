"""add schedules"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.rls import enable_rls

revision: str = '20261201_0908'
down_revision: str | None = '20261130_0904'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'schedules',
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('name', sa.Text(), nullable=True),
        sa.Column('cron', sa.Text(), nullable=False),
        sa.Column('time_zone', sa.Text(), nullable=False),
        sa.Column('job', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('figure', sa.Text(), nullable=False),
        sa.Column('anchors', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column('run_usd', sa.Double(), nullable=True),
        sa.Column('total_usd', sa.Double(), nullable=True),
        sa.Column('key_id', sa.Text(), nullable=True),
        sa.Column('paused_reason', sa.Text(), nullable=True),
        sa.Column('next_due', sa.DateTime(timezone=True), nullable=True),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.CheckConstraint(
            "paused_reason IN ('by_user', 'budget_used_up', 'key_ended')", name=op.f('ck_schedules_paused_reason')
        ),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_schedules')),
    )
    op.create_index(
        'ix_schedules_tenant_newest', 'schedules', ['tenant', sa.text('created_at DESC'), sa.text('id DESC')]
    )
    op.create_index(
        'ix_schedules_next_due', 'schedules', ['next_due'], postgresql_where=sa.text('next_due IS NOT NULL')
    )
    op.create_table(
        'schedule_runs',
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('schedule_id', sa.Text(), nullable=False),
        sa.Column('due', sa.DateTime(timezone=True), nullable=False),
        sa.Column('state', sa.Text(), nullable=False),
        sa.Column('reason', sa.Text(), nullable=True),
        sa.Column('missed', sa.Integer(), server_default=sa.text('0'), nullable=False),
        sa.Column('job_id', sa.Text(), nullable=True),
        sa.Column('anchor_job_id', sa.Text(), nullable=True),
        sa.Column('design', sa.Text(), nullable=True),
        *(
            sa.Column(name, sa.Double(), nullable=True)
            for name in ('value', 'low', 'high', 'anchor', 'anchor_low', 'anchor_high')
        ),
        sa.Column('anchors', postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column(
            'alarms', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'"), nullable=False
        ),
        sa.Column('usd', sa.Double(), nullable=True),
        sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state IN ('due', 'running', 'measured', 'failed', 'skipped', 'missed')",
            name=op.f('ck_schedule_runs_state'),
        ),
        sa.CheckConstraint(
            "(state IN ('due', 'running')) = (ended_at IS NULL)", name=op.f('ck_schedule_runs_ended_at')
        ),
        sa.ForeignKeyConstraint(
            ['schedule_id'], ['schedules.id'], name=op.f('fk_schedule_runs_schedule_id_schedules'),
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_schedule_runs')),
        sa.UniqueConstraint('schedule_id', 'due', name=op.f('uq_schedule_runs_schedule_id')),
    )
    op.create_index(
        'ix_schedule_runs_active', 'schedule_runs', ['schedule_id'],
        postgresql_where=sa.text("state IN ('due', 'running')"),
    )
    enable_rls('schedules')
    enable_rls('schedule_runs')


def downgrade() -> None:
    """Takes it back, with all schedules in it."""
    op.drop_table('schedule_runs')
    op.drop_table('schedules')
