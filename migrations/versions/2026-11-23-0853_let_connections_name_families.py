"""let connections name families, and be of base models"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql
revision: str = '20261126_0210'
down_revision: str | None = '20261126_0200'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('connections', sa.Column('families', postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False))
    _allow("'openai', 'anthropic', 'completions'")


def downgrade() -> None:
    """Takes it back, with the connections that speak the wire format of base models."""
    op.execute("DELETE FROM connections WHERE kind = 'completions'")
    _allow("'openai', 'anthropic'")
    op.drop_column('connections', 'families')


def _allow(kinds: str) -> None:
    """Has the table take these wire formats; its rows are read afterwards (``app/db/migration/backfill.py``)."""
    op.drop_constraint(op.f('ck_connections_kind'), 'connections', type_='check')
    op.create_check_constraint(op.f('ck_connections_kind'), 'connections', f'kind IN ({kinds})', postgresql_not_valid=True)
