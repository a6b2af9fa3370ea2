"""keep API keys"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
revision: str = '20261123_0710'
down_revision: str | None = '20261123_0770'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table('api_keys',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('scopes', postgresql.ARRAY(sa.Text()), nullable=False),
    sa.Column('prefix', sa.Text(), nullable=False),
    sa.Column('digest', sa.LargeBinary(), nullable=False),
    sa.Column('former_prefix', sa.Text(), nullable=True),
    sa.Column('former_digest', sa.LargeBinary(), nullable=True),
    sa.Column('former_expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('requests_per_minute', sa.Integer(), nullable=True),
    sa.Column('nanos_limit', sa.BigInteger(), nullable=True),
    sa.Column('nanos', sa.BigInteger(), server_default=sa.text('0'), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_used_at', sa.DateTime(timezone=True), nullable=True),
    sa.CheckConstraint("scopes <@ ARRAY['read', 'submit', 'admin'] AND scopes <> '{}'", name=op.f('ck_api_keys_scopes')),
    sa.CheckConstraint('num_nulls(former_prefix, former_digest, former_expires_at) IN (0, 3)', name=op.f('ck_api_keys_former')),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_api_keys'))
    )
    op.create_index('ix_api_keys_tenant_newest', 'api_keys', ['tenant', sa.literal_column('created_at DESC'), sa.literal_column('id DESC')], unique=False)
    op.create_index('ix_api_keys_prefix', 'api_keys', ['prefix'], unique=True)
    op.create_index('ix_api_keys_former_prefix', 'api_keys', ['former_prefix'], unique=True)
    op.add_column('budgets', sa.Column('key_id', sa.Text(), nullable=True))
    op.create_index('ix_budgets_key_id', 'budgets', ['key_id'], unique=False, postgresql_where=sa.text('key_id IS NOT NULL'))


def downgrade() -> None:
    """Takes it back."""
    op.drop_index('ix_budgets_key_id', table_name='budgets', postgresql_where=sa.text('key_id IS NOT NULL'))
    op.drop_column('budgets', 'key_id')
    op.drop_table('api_keys')
