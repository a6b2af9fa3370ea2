"""keep packed uploads"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from migrations.rls import enable_rls

revision: str = '20261201_0931'
down_revision: str | None = '20261201_0930'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

BEFORE, AFTER = "'receiving', 'ready', 'invalid'", "'receiving', 'reading', 'ready', 'invalid'"


def upgrade() -> None:
    """Applies the change."""
    op.add_column('uploads', sa.Column('format', sa.Text(), nullable=True))
    op.add_column('uploads', sa.Column('unpacked', sa.BigInteger(), server_default='0', nullable=False))
    op.add_column('uploads', sa.Column('reading_until', sa.DateTime(timezone=True), nullable=True))
    _let_be(AFTER)
    op.add_column(
        'upload_records', sa.Column('judged', postgresql.JSONB(astext_type=sa.Text()), nullable=True)
    )
    op.create_table(
        'upload_parts',
        sa.Column('upload_id', sa.Text(), nullable=False),
        sa.Column('start', sa.BigInteger(), nullable=False),
        sa.Column('tenant', sa.Text(), nullable=False),
        sa.Column('size', sa.Integer(), nullable=False),
        sa.Column('data', sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ['upload_id'],
            ['uploads.id'],
            name=op.f('fk_upload_parts_upload_id_uploads'),
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('upload_id', 'start', name=op.f('pk_upload_parts')),
    )
    op.execute('ALTER TABLE upload_parts ALTER COLUMN data SET STORAGE EXTERNAL')
    enable_rls('upload_parts')


def downgrade() -> None:
    """Takes it back, with what is kept of packed files."""
    op.drop_table('upload_parts')
    op.drop_column('upload_records', 'judged')
    op.execute("DELETE FROM uploads WHERE status = 'reading'")
    _let_be(BEFORE)
    for column in ('reading_until', 'unpacked', 'format'):
        op.drop_column('uploads', column)


def _let_be(statuses: str) -> None:
    name = op.f('ck_uploads_status')
    op.drop_constraint(name, 'uploads', type_='check')
    op.create_check_constraint(name, 'uploads', f'status IN ({statuses})', postgresql_not_valid=True)
