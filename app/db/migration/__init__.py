"""Brings a database to the revision that a release needs."""
