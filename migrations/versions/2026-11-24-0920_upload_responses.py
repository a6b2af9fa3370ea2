"""upload responses"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.rls import enable_rls

revision: str = '20261201_0920'
down_revision: str | None = '20261201_0915'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.create_table(
        'uploads',
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('name', sa.Text(), nullable=True),
        sa.Column('status', sa.Text(), nullable=False),
        sa.Column('size', sa.BigInteger(), nullable=False),
        sa.Column('received', sa.BigInteger(), nullable=False),
        sa.Column('records', sa.Integer(), nullable=False),
        sa.Column('lines', sa.BigInteger(), nullable=False),
        sa.Column('tail', sa.LargeBinary(), nullable=False),
        sa.Column('skipping', sa.Boolean(), nullable=False),
        sa.Column('error_count', sa.Integer(), nullable=False),
        sa.Column('errors', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('rules', postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column('created_at', sa.DateTime(timezone=True), server_default=sa.text('now()'), nullable=False),
        sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status IN ('receiving', 'ready', 'invalid')", name=op.f('ck_uploads_status')),
        sa.CheckConstraint('received <= size', name=op.f('ck_uploads_received')),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_uploads')),
    )
    op.create_index('ix_uploads_newest', 'uploads', ['tenant', 'created_at', 'id'], unique=False)
    op.create_index('ix_uploads_expires_at', 'uploads', ['expires_at'], unique=False)
    op.create_table(
        'upload_records',
        sa.Column('upload_id', sa.Text(), nullable=False),
        sa.Column('ordinal', sa.Integer(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('line', sa.BigInteger(), nullable=False),
        sa.Column('persona', sa.Text(), nullable=False),
        sa.Column('task', sa.Text(), nullable=False),
        sa.Column('model', sa.Text(), nullable=False),
        sa.Column('item', sa.Text(), nullable=True),
        sa.Column('run', sa.Integer(), nullable=True),
        sa.Column('instruction', sa.Integer(), nullable=True),
        sa.Column('question', sa.Text(), nullable=True),
        sa.Column('status', sa.Text(), nullable=False),
        sa.Column('text', sa.Text(), nullable=False),
        sa.Column('thoughts', sa.Text(), nullable=True),
        sa.Column('error', sa.Text(), nullable=True),
        sa.Column('unit_starts', postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.Column('unit_ends', postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.ForeignKeyConstraint(
            ['upload_id'],
            ['uploads.id'],
            name=op.f('fk_upload_records_upload_id_uploads'),
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('upload_id', 'ordinal', name=op.f('pk_upload_records')),
    )
    enable_rls('uploads')
    enable_rls('upload_records')


def downgrade() -> None:
    """Takes it back, with all uploads in it."""
    op.drop_table('upload_records')
    op.drop_table('uploads')
