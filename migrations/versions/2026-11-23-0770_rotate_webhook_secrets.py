"""rotate webhook secrets, find a job's annotations in their order"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261123_0770'
down_revision: str | None = '20261122_0640'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('webhooks', sa.Column('former_secret', sa.Text(), nullable=True))
    op.add_column('webhooks', sa.Column('former_secret_until', sa.DateTime(timezone=True), nullable=True))
    op.create_check_constraint(op.f('ck_webhooks_former_secret'), 'webhooks', '(former_secret IS NULL) = (former_secret_until IS NULL)')
    op.create_index('ix_annotations_job', 'annotations', ['job_id', 'id'], unique=False)
    op.create_index('ix_annotations_tenant', 'annotations', ['tenant', 'id'], unique=False)


def downgrade() -> None:
    """Takes it back."""
    op.drop_index('ix_annotations_tenant', table_name='annotations')
    op.drop_index('ix_annotations_job', table_name='annotations')
    op.drop_constraint(op.f('ck_webhooks_former_secret'), 'webhooks', type_='check')
    op.drop_column('webhooks', 'former_secret_until')
    op.drop_column('webhooks', 'former_secret')
