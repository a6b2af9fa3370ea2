"""The rate limiter's arithmetic: who may send how many calls, and when. No clock, no Redis.

All limits of a model share one timeline. A *lease* begins at the moment up to which the timeline is used up (the theoretical arrival
time of the generic cell rate algorithm, ITU-T I.371, annex A), call `i` of it goes at
``start + max(cost of the calls before it in limit k × seconds per unit of limit k)``, and the timeline is used up to where the
call after the last would go. So any number of limits hold together, and every lease lets calls go.

A limit that nobody names is found out: on a 429 all wait, then a single call is sent; once the provider takes it, calls go as
fast as they were taken before, and faster as long as no further 429 comes.

:data:`app.limits.scripts.LEASE` is the same arithmetic in Lua, done at one go in Redis; a test holds the two together.
All times are seconds.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class _Probing:
    """From a 429 until a call is taken again."""

    seen: float
    """Calls that were taken in the minute before the 429."""
    since: float
    """When the first of them was sent."""
    tries: int = 0
    sent_at: float = 0.0
    """When the single call was sent; 0 for not yet."""


@dataclass(slots=True)
class _Found:
    """A rate that was found out by a 429."""

    interval: float
    doubling: float
    """Seconds in which it doubles, as long as it is a guess; 0 for a rate that was seen to be taken for a minute."""
    paced: float = 0.0
    """Seconds that calls have gone at it."""

    def now(self) -> float:
        """Seconds between two calls by now."""
        if self.doubling:
            return float(self.interval / 2 ** (self.paced / self.doubling))
        growing = max(0.0, self.paced - STEADY_SECONDS) / FASTER_SECONDS
        return float(self.interval / 1.01 ** (2**growing - 1))


@dataclass(slots=True)
class Timeline:
    """The state of one connection's model, for all processes together."""

    epoch: float = 0.0
    due: float | None = None
    named: Intervals = UNLIMITED
    named_at: float = 0.0
    known: Intervals = UNLIMITED
    hold: float = 0.0
    limited_at: float = 0.0
    probing: _Probing | None = None
    found: _Found | None = None
    history: deque[tuple[float, Cost]] = field(default_factory=deque)
    """What was sent within the last minute, and when."""

    def lease(
        self, now: float, report: Report, calls: Sequence[Cost], operators: Intervals, largest: Cost
    ) -> Lease:
        """Takes in a report and, if there are calls, leases them time or says how long to wait.

        Args:
            now: Never earlier than at the call before.
            report: What the process has to tell.
            calls: What it wants to send; may be none.
            operators: The operator's limits.
            largest: Cost of the largest call that the process has had.
        """
        fresh = self.due is None
        self._take_limits(now, report, operators)
        self._take_outcomes(now, report)
        intervals = self._intervals()
        if self.hold > now:
            return Lease(0, self.hold - now, intervals, held=self.hold - now)
        if not calls:
            return Lease(0, 0.0, intervals)
        if self.probing is not None:
            return self._probe(now, self.probing, calls[0], intervals)
        if not any(intervals):
            return Lease(len(calls), 0.0, intervals)
        start = now - CREDIT_SECONDS if self.due is None else max(self.due, now - CREDIT_SECONDS)
        if fresh:  # what had been leased in an earlier epoch is over by then
            start = max(start, self.epoch + HORIZON_SECONDS + max(SPAN_SECONDS, duration(largest, intervals)))
        cost = total(calls).plus(report.beyond)
        start = self._when_window_has_room(start, cost)
        if start > now + HORIZON_SECONDS:
            return Lease(0, start - now - HORIZON_SECONDS, intervals)
        self._spend(start, cost, intervals)
        if self.found is not None:
            paced = cost.requests * self.found.now()
            self.found.paced += min(paced, LONGEST_STEP_SECONDS) if self.found.doubling else paced
        return Lease(len(calls), start - now, intervals)

    def _when_window_has_room(self, start: float, cost: Cost) -> float:
        """When a large lease and what was sent in the minute before it are within the limits."""
        begin = start
        for k, each in enumerate(self.known):
            if cost[k] * each <= COARSE_SHARE * MINUTE_SECONDS:
                continue
            room = 1.000001 * MINUTE_SECONDS / each - cost[k]
            recent = [(at, sent[k]) for at, sent in self.history if at > begin - MINUTE_SECONDS + 1e-6]
            used = sum(units for _, units in recent)
            for at, units in recent:
                if used <= room:
                    break
                used -= units
                start = max(start, at + MINUTE_SECONDS)
        return start

    def _take_limits(self, now: float, report: Report, operators: Intervals) -> None:
        """Keeps what the provider names, and accounts for what was sent before it was known."""
        if report.named is not None and now - report.named_age > self.named_at:
            self.named, self.named_at = report.named, now - report.named_age
        named = self.named if now - self.named_at < NAMED_SECONDS else UNLIMITED
        before, self.known = self.known, _slower(operators, named)
        sent_at = now - report.unleased_age
        if report.unleased.requests:
            self.history.append((now, report.unleased))  # they may have arrived as late as now
        while self.history and self.history[0][0] < now - MINUTE_SECONDS:
            self.history.popleft()
        if any(new > 1.000001 * old for old, new in zip(before, self.known, strict=True)) and self.history:
            since, sent = self._sent()
            self.due = max(self.due or 0.0, since + duration(sent, self.known))
        elif report.unleased.requests and self.due is not None:
            self.due = max(self.due, sent_at) + duration(report.unleased, self.known)

    def _take_outcomes(self, now: float, report: Report) -> None:
        """Holds everybody after a 429, and finds the rate once a call is taken again."""
        first = False
        if report.rejected:
            self.history.append((now, Cost(-report.rejected)))
        if report.limited_age is not None:
            if now - report.limited_age > self.limited_at:
                first = self.probing is None
                self._limit(now, report.retry_after)
            elif self.probing is not None and not self.probing.sent_at:
                self.hold = max(self.hold, now + (report.retry_after or 0.0))
        if self.probing is not None and not first:
            self.probing.seen = max(0.0, self.probing.seen + report.unleased.requests - report.rejected)
        if report.answered and self.probing is not None and self.probing.sent_at:
            self._resume(self.probing)
        if report.hold > 0:
            self.hold = max(self.hold, now + report.hold)
            self.probing = self.probing or _Probing(0.0, now)
            self.probing.sent_at = 0.0

    def _limit(self, now: float, retry_after: float | None) -> None:
        if self.probing is None:
            since, sent = self._sent()
            self.probing = _Probing(sent.requests, min(since, now))
        probing = self.probing
        probing.tries += 1
        probing.sent_at = 0.0
        self.limited_at = now
        backoff = max(FIRST_HOLD_SECONDS, self._intervals()[0]) * HOLD_FACTOR ** min(probing.tries - 1, 10)
        if retry_after is None:
            # A window of a minute is the longest that is common: at its end calls are taken again.
            minute_over = probing.since + MINUTE_SECONDS
            wait = min(backoff, minute_over - now) if minute_over > now else backoff
        elif probing.tries == 1:
            wait = retry_after
        else:
            wait = max(retry_after, min(backoff / HOLD_FACTOR, LONGEST_HOLD_SECONDS))
        if retry_after is None:
            wait = min(wait, LONGEST_HOLD_SECONDS)
        self.hold = max(self.hold, now + wait)

    def _resume(self, probing: _Probing) -> None:
        """Goes on at the rate at which calls were taken before the 429."""
        self.probing = None
        if probing.tries and probing.seen >= 1:
            elapsed = probing.sent_at - probing.since
            minute = elapsed >= WINDOW_SEEN_SECONDS
            each = (MINUTE_SECONDS if minute else max(elapsed, 0.001)) / probing.seen
            if self.found is not None:
                current, doubling = self.found.now(), self.found.doubling
                kept = 1 - (1 - GUESS_KEPT) * (DOUBLING_SECONDS / doubling) ** 0.5 if doubling else 0.5
                slower = doubling * 4 if doubling < LONGEST_DOUBLING_SECONDS else 0.0
                self.found = _Found(min(max(each, current / 0.98), current / kept), slower)
            else:
                limited = any(self.known)
                if self.known[0]:
                    each = min(each, self.known[0] / LOWEST_SHARE)
                guess = limited or not minute or probing.seen < FEWEST_SEEN
                self.found = _Found(each, DOUBLING_SECONDS if guess else 0.0)
            self.due = max(self.due or 0.0, probing.sent_at + self.found.now())

    def _probe(self, now: float, probing: _Probing, cost: Cost, intervals: Intervals) -> Lease:
        if probing.sent_at and now < probing.sent_at + PROBE_SECONDS:
            return Lease(0, PROBE_POLL_SECONDS, intervals)
        probing.sent_at = now
        self._spend(max(self.due or 0.0, now), cost, intervals)
        return Lease(1, 0.0, intervals, probe=True)

    def _intervals(self) -> Intervals:
        if self.found is None:
            return self.known
        each = self.found.now()
        if each < max(self.known[0], FASTEST_SECONDS):
            self.found = None
            return self.known
        return (max(self.known[0], each), *self.known[1:])

    def _spend(self, start: float, cost: Cost, intervals: Intervals) -> None:
        self.due = start + duration(cost, intervals)
        self.history.append((start, cost))

    def _sent(self) -> tuple[float, Cost]:
        """Since when calls were sent within the last minute, and what they cost together."""
        since = min((at for at, _ in self.history), default=float("inf"))
        return since, total([cost for _, cost in self.history])


def _slower(one: Intervals, other: Intervals) -> Intervals:
    first, second, third, fourth = (max(pair) for pair in zip(one, other, strict=True))
    return first, second, third, fourth
