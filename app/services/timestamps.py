"""Timestamps in the HTTP contract's form."""

from datetime import datetime


def time_json(moment: datetime | None) -> str | None:
    """A moment in UTC as RFC 3339 text."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
