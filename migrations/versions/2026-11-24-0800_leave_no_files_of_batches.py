"""leave no files of batches, count our own errors and waits for a rate limit apart"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

from migrations.tenant_wall import enable_rls

revision: str = '20261124_0800'
down_revision: str | None = '20261123_0780'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('batches', sa.Column('errors', sa.SmallInteger(), server_default=sa.text('0'), nullable=False))
    op.add_column('batches', sa.Column('cut', sa.Boolean(), server_default=sa.text('false'), nullable=False))
    op.add_column('batch_calls', sa.Column('waits', sa.SmallInteger(), server_default=sa.text('0'), nullable=False))
    op.create_table('batch_files',
    sa.Column('id', sa.Uuid(), nullable=False),
    sa.Column('tenant', sa.Text(), nullable=False),
    sa.Column('connection', sa.Text(), nullable=False),
    sa.Column('batch_id', sa.BigInteger(), nullable=True),
    sa.Column('file_id', sa.Text(), nullable=True),
    sa.Column('made_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('due_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
    sa.Column('failures', sa.SmallInteger(), server_default=sa.text('0'), nullable=False),
    sa.ForeignKeyConstraint(['batch_id'], ['batches.id'], name=op.f('fk_batch_files_batch_id_batches'), ondelete='SET NULL'),
    sa.PrimaryKeyConstraint('id', name=op.f('pk_batch_files'))
    )
    op.create_index('ix_batch_files_batch_id', 'batch_files', ['batch_id'], unique=False)
    op.create_index('ix_batch_files_unneeded', 'batch_files', ['due_at'], unique=False, postgresql_where=sa.text('batch_id IS NULL'))
    enable_rls('batch_files')


def downgrade() -> None:
    """Takes it back."""
    op.drop_table('batch_files')
    op.drop_column('batch_calls', 'waits')
    op.drop_column('batches', 'cut')
    op.drop_column('batches', 'errors')
