"""keep tenants apart"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.tenant_wall import enable_rls, let_tenants_mix

revision: str = '20261123_0720'
down_revision: str | None = '20261123_0710'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

# Locked in the order in which workers write them, so that none of them waits for one that waits for it.
TABLES = (
    *('jobs', 'budgets', 'cells', 'shards', 'responses', 'verdicts', 'second_verdicts', 'grades'),
    *('preparations', 'calls', 'reused_replies', 'replies', 'reservations', 'batches', 'batch_calls'),
    *('shard_usage', 'shard_reuse', 'job_results', 'idempotency_keys', 'question_sets', 'persona_sets', 'job_sets'),
    *('annotations', 'labelling_rounds', 'webhooks', 'webhook_deliveries', 'api_keys'),
)
WITHOUT_TENANT = ('reservations', 'batch_calls')


def upgrade() -> None:
    """Applies the change."""
    for table in TABLES:
        if table in WITHOUT_TENANT:
            # So far there is but one tenant, and workers of the release before go on writing rows without naming it.
            op.add_column(table, sa.Column('tenant', sa.Text(), server_default=sa.text("'default'"), nullable=False))
        enable_rls(table)


def downgrade() -> None:
    """Takes it back."""
    for table in TABLES:
        let_tenants_mix(table)
        if table in WITHOUT_TENANT:
            op.drop_column(table, 'tenant')
