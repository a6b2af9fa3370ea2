"""Alembic migrations, named by date and deed."""
