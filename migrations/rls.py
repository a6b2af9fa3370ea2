"""What a migration does for a table with rows of tenants, so that each sees its own (``app/db/row_level_security.py``)."""

from alembic import op


def enable_rls(table: str) -> None:
    """Has a table show and take only the rows of the tenant that a transaction names, except for its owner.

    The setting is read once a statement, not once a row.
    """
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(
        f"CREATE POLICY tenant ON {table} USING (tenant = (SELECT current_setting('assay.tenant', true)))"
    )


def disable_rls(table: str) -> None:
    """Takes that back."""
    op.execute(f"DROP POLICY tenant ON {table}")
    op.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
