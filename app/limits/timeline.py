"""The rate limiter's figures: who may send how many calls, and when. No clock, no Redis.

All limits of a model share one timeline. A *lease* begins at the moment up to which the timeline is used up (the theoretical arrival
time of the generic cell rate algorithm, ITU-T I.371, annex A), call `i` of it goes at
``start + max(cost of the calls before it in limit k × seconds per unit of limit k)``, and the timeline is used up to where the
call after the last would go. So any number of limits hold together, and every lease lets calls go.

A limit that nobody names is found out: on a 429 all wait, then a single call is sent; once the provider takes it, calls go as
fast as they were taken before, and faster as long as no further 429 comes.

:data:`app.limits.scripts.LEASE` does it in Lua, at one go in Redis; tests hold it to the same arithmetic in Python
(``tests/timeline.py``). All times are seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

RESOURCES = ("requests", "tokens", "input_tokens", "output_tokens")
"""What limits count, in the order of :class:`Cost`."""

SLACK_SECONDS = 0.25
"""A call is sent at most so long after its moment; later it has lost it."""
TRANSIT_SECONDS = 0.25
"""How much longer one call may take to its provider than another."""
MINUTE_SECONDS = 60 + SLACK_SECONDS + TRANSIT_SECONDS
"""Seconds over which a limit of a minute is spread: then no 60 seconds see more calls arrive than the limit."""

CREDIT_SECONDS = 0.1
"""By how much a lease may begin in the past, so that the round trip between two leases costs no calls."""
SPAN_SECONDS = 0.2
"""Seconds' worth of calls in one lease, unless one call alone is worth more."""
HORIZON_SECONDS = 0.3
"""Seconds ahead of time that a lease may begin."""
NAMED_SECONDS = 600.0
"""How long a limit that a provider named is kept without being named again."""

COARSE_SHARE = 0.004
"""A lease that takes a larger share of a limit is also held against what was sent within the last minute: evenly spread calls of 4,000
tokens come to 8 in 60 seconds under a limit of 30,000, where 7 are allowed. Smaller calls are within the slack."""

FIRST_HOLD_SECONDS = 0.5
"""How long all wait after a 429 that does not say how long; four times as long after each further one in a row."""
LONGEST_HOLD_SECONDS = 60.0
HOLD_FACTOR = 4.0
PROBE_SECONDS = 5.0
"""After so long without an answer to the single call that follows a 429, another one is sent."""
PROBE_POLL_SECONDS = 0.05
"""How often it is asked for the outcome of that call."""
WINDOW_SEEN_SECONDS = 50.0
"""Where calls were refused until so long after the first one, the provider counts by the minute."""
FEWEST_SEEN = 3
"""A rate that was found with fewer calls is a guess, which others' use of the same account may have caused."""
LOWEST_SHARE = 0.25
"""After a 429, calls go at least at this share of the limit that is known."""
STEADY_SECONDS = 120.0
"""A rate that was found is kept for so long."""
FASTER_SECONDS = 60.0
"""From then on it grows by 1 %, then twice as much, in every period of so many seconds."""
DOUBLING_SECONDS = 5.0
"""A rate that is a guess doubles within so many seconds, after the next 429 within four times as many."""
LONGEST_DOUBLING_SECONDS = 80.0
"""A rate that still leads to a 429 when it doubles so slowly is no guess any more."""
GUESS_KEPT = 0.6
"""Share of a guess that is kept after a 429; where it doubled more slowly, so much more that half of the rest is kept."""
LONGEST_STEP_SECONDS = 2.5
"""One lease counts as no more than so many seconds of doubling."""
FASTEST_SECONDS = 0.0001
"""Seconds between two calls at which a rate that was found is none any more."""


class Cost(NamedTuple):
    """What calls take of each resource."""

    requests: float = 0.0
    tokens: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    def plus(self, other: "Cost") -> "Cost":
        """The cost of both."""
        return Cost(*(mine + its for mine, its in zip(self, other, strict=True)))


NOTHING = Cost()
Intervals = tuple[float, float, float, float]
"""Seconds per unit of each resource; 0 for no limit."""
UNLIMITED: Intervals = (0.0, 0.0, 0.0, 0.0)


def interval(per_minute: float | None) -> float:
    """Seconds per unit of a limit; 0 for no limit."""
    return MINUTE_SECONDS / per_minute if per_minute else 0.0


def per_minute(each: float) -> float | None:
    """The limit that has an interval; ``None`` for no limit."""
    return MINUTE_SECONDS / each if each else None


def duration(cost: Cost, intervals: Intervals) -> float:
    """How much of the timeline a cost takes: as much as its tightest limit."""
    return max(units * each for units, each in zip(cost, intervals, strict=True))


def total(costs: Sequence[Cost]) -> Cost:
    """What calls take together."""
    return Cost(*(sum(units) for units in zip(NOTHING, *costs, strict=True)))


@dataclass(slots=True)
class Report:
    """What a process has to tell since it told last.

    Attributes:
        unleased: What it sent without a lease, while it knew of no limit.
        unleased_age: How long ago the first of that was sent.
        beyond: Tokens that calls took beyond those expected; part of what a lease costs, and to be told again if there is none.
        named: The limits that the provider named last; ``None`` if nothing is known.
        named_age: How long ago it did.
        rejected: Calls answered with 429.
        limited_age: How long ago such a call had been sent; ``None`` if there was none.
        retry_after: What it asked to wait; ``None`` if it did not say.
        answered: Whether the single call that follows a 429 was taken.
        hold: How long the provider will take no call, where a reply says so without being a 429.
    """

    unleased: Cost = NOTHING
    unleased_age: float = 0.0
    beyond: Cost = NOTHING
    named: Intervals | None = None
    named_age: float = 0.0
    rejected: int = 0
    limited_age: float | None = None
    retry_after: float | None = None
    answered: bool = False
    hold: float = 0.0


class Lease(NamedTuple):
    """The answer to a process that wants to send calls.

    Attributes:
        calls: How many of them may go; 0 for none yet.
        start: When the first may go, in seconds from now; where none may, when to ask again.
        intervals: In force.
        probe: Whether its one call is the one that follows a 429: how it ends is to be reported at once.
        held: Seconds until the end of a hold.
    """

    calls: int
    start: float
    intervals: Intervals
    probe: bool = False
    held: float = 0.0
