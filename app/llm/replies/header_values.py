"""Numbers, moments and durations in providers' headers."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import pairwise

LONGEST_WAIT_SECONDS = 3600.0
"""No header holds calls back for longer: after that it does no harm to ask again."""
LATEST_END_SECONDS = 31 * 86_400.0
"""Nobody is told of a later end of a wait: that is nonsense, and may be no date."""

_RESET_UNITS: Mapping[str, float] = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_RESET_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def number(text: str | None) -> float | None:
    """Parse a non-negative header number, else ``None``."""
    try:
        value = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return max(value, 0.0) if math.isfinite(value) else None


def seconds_until(moment: str, now: datetime) -> float | None:
    """Seconds until an ISO 8601 time or an HTTP date, 0 or more; ``None`` where it is neither."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            parsed = parse(moment)
        except ValueError:
            continue
        return max((parsed.replace(tzinfo=parsed.tzinfo or UTC) - now).total_seconds(), 0.0)
    return None


def seconds_of_duration(text: str) -> float | None:
    """Seconds of OpenAI's durations: ``20ms``, ``6m0s``, ``1h2m3.5s``; ``None`` for anything else."""
    parts = list(_RESET_PART.finditer(text))
    unbroken = all(left.end() == right.start() for left, right in pairwise(parts))
    if not parts or not unbroken or (parts[0].start(), parts[-1].end()) != (0, len(text)):
        return None
    return sum(float(part[1]) * _RESET_UNITS[part[2]] for part in parts)
