"""count schedules' values"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = '20261201_0932'
down_revision: str | None = '20261201_0931'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column(
        'schedules', sa.Column('simulated', sa.Boolean(), server_default=sa.text('false'), nullable=False)
    )
    for prefix in ('', 'anchor_'):
        op.add_column('schedule_runs', sa.Column(f'{prefix}n', sa.Integer(), nullable=True))
        op.add_column('schedule_runs', sa.Column(f'{prefix}left_out', sa.Integer(), nullable=True))
        op.add_column('schedule_runs', sa.Column(f'{prefix}coverage', sa.Double(), nullable=True))


def downgrade() -> None:
    """Takes it back."""
    for prefix in ('anchor_', ''):
        for name in ('n', 'left_out', 'coverage'):
            op.drop_column('schedule_runs', prefix + name)
    op.drop_column('schedules', 'simulated')
