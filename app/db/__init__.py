"""Postgres, the only truth: tables, engine, and repositories. All SQL of the project is in this package."""
