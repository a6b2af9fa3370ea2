"""keep thoughts, finish reasons and what a content filter refused"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
revision: str = '20261125_0930'
down_revision: str | None = '20261125_0900'
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

THINKING = ('responses', 'verdicts', 'second_verdicts', 'grades', 'replies')
FINISHING = ('verdicts', 'second_verdicts', 'grades')
STATUSES = {
    'responses': ("'answered', 'refused', 'failed'", "'answered', 'refused', 'filtered', 'no_answer', 'failed'"),
    'verdicts': (
        "'scored', 'not_applicable', 'refused', 'unparsed', 'failed'",
        "'scored', 'not_applicable', 'refused', 'unparsed', 'filtered', 'failed'",
    ),
    'second_verdicts': (
        "'scored', 'not_applicable', 'refused', 'unparsed', 'failed'",
        "'scored', 'not_applicable', 'refused', 'unparsed', 'filtered', 'failed'",
    ),
    'grades': ("'scored', 'refused', 'unparsed', 'failed'", "'scored', 'refused', 'unparsed', 'filtered', 'failed'"),
}
"""What a status may be, before and after."""


def upgrade() -> None:
    """Applies the change."""
    for table in THINKING:
        op.add_column(table, sa.Column('thoughts', sa.Text(), nullable=True))
    for table in FINISHING:
        op.add_column(table, sa.Column('finish_reason', sa.Text(), nullable=True))
    for table in ('responses', 'calls'):
        op.add_column(table, sa.Column('reasoning_tokens', sa.Integer(), nullable=True))
    for table, (_, after) in STATUSES.items():
        _allow(table, after)


def downgrade() -> None:
    """Takes it back. What is neither text nor verdict by the words of before counts as refused or failed."""
    op.execute("UPDATE responses SET status = 'refused' WHERE status = 'filtered'")
    op.execute("UPDATE responses SET status = 'failed', text = NULL WHERE status = 'no_answer'")
    for table, (before, _) in STATUSES.items():
        op.execute(f"UPDATE {table} SET status = 'refused' WHERE status = 'filtered'")
        _allow(table, before)
    for table in ('calls', 'responses'):
        op.drop_column(table, 'reasoning_tokens')
    for table in reversed(FINISHING):
        op.drop_column(table, 'finish_reason')
    for table in reversed(THINKING):
        op.drop_column(table, 'thoughts')


def _allow(table: str, statuses: str) -> None:
    """Has a table take these statuses; its rows are read afterwards, when it is no longer locked (``app/db/migration/backfill.py``)."""
    op.drop_constraint(op.f(f'ck_{table}_status'), table, type_='check')
    op.create_check_constraint(op.f(f'ck_{table}_status'), table, f'status IN ({statuses})', postgresql_not_valid=True)
