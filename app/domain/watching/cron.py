"""When a schedule is due: cron expressions in a time zone, with its changes of the clock as Debian's cron has them.

A local time that a change of the clock leaves out is due when the clock has moved on; one that comes twice is due once. Where the
minute or the hour is ``*``, each passing of the real clock counts.
"""

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from app.domain.suggestion import did_you_mean

FEWEST_MINUTES = 15
"""Between two due times."""
_LOOKED_AT = 400
"""Due times that are looked at: a day of a schedule that is due every few minutes, more than a year of a daily one."""
_YEAR = timedelta(days=365.25)
_START = datetime(2026, 1, 1, tzinfo=UTC)
"""From where an expression is looked at, so that what is taken once is taken whenever it is checked."""
_FIELDS = 5


@lru_cache
def zones() -> frozenset[str]:
    """The time zones of the IANA database that are places, or UTC."""
    return frozenset(zone for zone in available_timezones() if zone != "localtime")


def check_zone(name: str) -> str:
    """The name of a time zone.

    Raises:
        ValueError: If there is none of that name.
    """
    if name not in zones():
        raise ValueError(
            f"unknown time zone {name!r}; use an IANA name such as Europe/Berlin"
            + did_you_mean(name, zones())
        )
    return name


def check_cron(expression: str) -> str:
    """A cron expression, without superfluous spaces.

    Raises:
        ValueError: If it is none, is never due, or too often.
    """
    parts = expression.split()
    if len(parts) != _FIELDS:
        raise ValueError("must have five fields: minute, hour, day of month, month, day of week")
    try:
        found = list(islice(due_times(expression, "UTC", _START), _LOOKED_AT))
    except CronSimError as error:
        raise ValueError(_wrong(str(error))) from error
    if len(found) < 2:  # noqa: PLR2004 - one alone is no schedule
        raise ValueError("is never due")
    if min(b - a for a, b in pairwise(found)) < timedelta(minutes=FEWEST_MINUTES):
        raise ValueError(f"must not be due more often than every {FEWEST_MINUTES} minutes")
    return " ".join(parts)


def _wrong(said: str) -> str:
    field = said.removeprefix("Bad ").replace("-", " ")
    return f"the {field} is wrong, or there is no such day" if "day" in field else f"the {field} is wrong"


def due_times(expression: str, zone: str, after: datetime) -> Iterator[datetime]:
    """The due times after a moment, in UTC, the next one first; ends if there is none within 50 years, or before the year 10,000."""
    with contextlib.suppress(OverflowError):
        for due in CronSim(expression, after.astimezone(ZoneInfo(zone))):
            yield due.astimezone(UTC)


def next_due(expression: str, zone: str, after: datetime) -> datetime | None:
    """The first due time after a moment; ``None`` if there is none."""
    return next(due_times(expression, zone, after), None)


def runs_a_year(expression: str) -> float:
    """How often an expression is due in a year, on average."""
    found = list(islice(due_times(expression, "UTC", _START), _LOOKED_AT))
    return (len(found) - 1) * (_YEAR / (found[-1] - found[0]))
