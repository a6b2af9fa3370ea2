"""keep connections"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.tenant_wall import enable_rls

revision: str = '20261123_0730'
down_revision: str | None = '20261123_0750'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'connections',
        sa.Column('version', sa.Text(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('name', sa.Text(), nullable=False),
        sa.Column('is_current', sa.Boolean(), server_default=sa.text('true'), nullable=False),
        sa.Column('kind', sa.Text(), nullable=False),
        sa.Column('base_url', sa.Text(), nullable=False),
        sa.Column('sealed_key', sa.Text(), nullable=True),
        sa.Column('key_hint', sa.Text(), nullable=True),
        sa.Column('limits', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('prices', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('models', sa.ARRAY(sa.Text()), nullable=True),
        sa.Column('batches', sa.Boolean(), nullable=False),
        sa.Column('description', sa.Text(), nullable=True),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
        sa.Column('updated_at', sa.DateTime(timezone=True), server_default=sa.text('clock_timestamp()'), nullable=False),
        sa.CheckConstraint("kind IN ('openai', 'anthropic')", name=op.f('ck_connections_kind')),
        sa.PrimaryKeyConstraint('version', name=op.f('pk_connections')),
    )
    op.create_index('ix_connections_tenant', 'connections', ['tenant', 'name'])
    op.create_index('uq_connections_current', 'connections', ['tenant', 'name'], unique=True, postgresql_where=sa.text('is_current'))
    enable_rls('connections')


def downgrade() -> None:
    """Takes it back, with all keys in it."""
    op.drop_table('connections')
