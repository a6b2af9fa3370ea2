"""label whole responses, each by so many people"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261129_0600'
down_revision: str | None = '20261129_0500'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None


def upgrade() -> None:
    """Applies the change."""
    op.add_column('labelling_rounds', sa.Column('answers_each', sa.SmallInteger(), nullable=True))
    _allow("'sentences', 'responses', 'pairs'")


def downgrade() -> None:
    """Takes it back, with the rounds of whole responses."""
    op.execute("DELETE FROM labelling_rounds WHERE kind = 'responses'")
    _allow("'sentences', 'pairs'")
    op.drop_column('labelling_rounds', 'answers_each')


def _allow(kinds: str) -> None:
    """Has the table take these kinds; its rows are read afterwards (``app/db/migration/backfill.py``)."""
    op.drop_constraint(op.f('ck_labelling_rounds_kind'), 'labelling_rounds', type_='check')
    op.create_check_constraint(op.f('ck_labelling_rounds_kind'), 'labelling_rounds', f'kind IN ({kinds})', postgresql_not_valid=True)
