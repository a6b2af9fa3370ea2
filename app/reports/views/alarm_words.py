"""Alarms in words."""

from app.domain.watching.attribution import Cause
from app.domain.watching.contract import Alarm


def words_of(alarm: Alarm) -> str:
    """A change in a few words."""
    who = "model or judge" if alarm.cause is Cause.UNKNOWN else alarm.cause.value
    return f"{who} {alarm.shift:+.3f}".replace("-", "−")
