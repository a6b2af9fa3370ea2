"""The rate limiter's arithmetic as a model: what :data:`app.limits.scripts.LEASE` does in Redis, on a clock of the test's own."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.limits.timeline import (
    COARSE_SHARE,
    CREDIT_SECONDS,
    DOUBLING_SECONDS,
    FASTER_SECONDS,
    FASTEST_SECONDS,
    FEWEST_SEEN,
    FIRST_HOLD_SECONDS,
    GUESS_KEPT,
    HOLD_FACTOR,
    HORIZON_SECONDS,
    LONGEST_DOUBLING_SECONDS,
    LONGEST_HOLD_SECONDS,
    LONGEST_STEP_SECONDS,
    LOWEST_SHARE,
    MINUTE_SECONDS,
    NAMED_SECONDS,
    PROBE_POLL_SECONDS,
    PROBE_SECONDS,
    SPAN_SECONDS,
    STEADY_SECONDS,
    UNLIMITED,
    WINDOW_SEEN_SECONDS,
    Cost,
    Intervals,
    Lease,
    Report,
    duration,
    total,
)


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
