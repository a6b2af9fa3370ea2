"""Numbers formatted for people."""

from collections.abc import Mapping
from typing import Any

SECONDS_PER_MINUTE = 60
MINUTES_PER_HOUR = 60
CENTS_BELOW_USD = 1.0


def duration(seconds: float) -> str:
    """A time such as ``0:07``, ``12:34`` or ``1:02:03``."""
    minutes, second = divmod(round(seconds), SECONDS_PER_MINUTE)
    hours, minute = divmod(minutes, MINUTES_PER_HOUR)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def dollars(usd: float | None) -> str:
    """An amount in dollars, or "unknown"; amounts below $1, which are common here, to a hundredth of a cent."""
    if usd is None:
        return "unknown"
    return f"${usd:,.4f}" if 0 < usd < CENTS_BELOW_USD else f"${usd:,.2f}"


def is_free(cost: Mapping[str, Any]) -> bool:
    """Return whether a job or a plan costs nothing and no price in it is unknown."""
    unpriced = cost.get("unpriced_calls") or cost.get("unpriced_models")
    return not unpriced and cost["usd_high" if "usd_high" in cost else "usd"] == 0


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, such as ``1 run`` or ``1,200 runs``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
