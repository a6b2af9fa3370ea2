"""How many calls one model may have in flight: found by trials, because no provider says it.

A *trial* changes the limit and compares how long calls take with how long equal calls took before. If twice the calls in
flight take about as long each, the provider really does twice the work, and the new limit stays; if they take twice as long, they wait
in the provider's queue, and the old limit returns. So the limit grows from :data:`START` by doubling, once per round trip,
and a single-slot server stays at a handful of calls. Time-outs and refusals for overload halve it.

Ideas: slow start and halving are TCP's (RFC 5681), the comparison of latencies is that of Netflix's concurrency-limits and of
Vector's adaptive request concurrency. Nothing here reads a clock or does I/O.
"""

from dataclasses import dataclass
from typing import NamedTuple

START = 4
"""Limit of a model about which nothing is known."""
MOST = 32_768
"""Highest limit."""
SHORTEST_SECONDS = 1e-6
"""Least time of a call: a coarse clock can measure none, and latencies divide."""
FEWEST_ANSWERED = 8
"""Calls that must have been answered before their latencies are compared."""
FIRST_STEP = 2.0
LATER_STEP = 1.25
"""By what factor a trial raises the limit: by the first until a trial fails, then by the second."""
LOWER_STEP = 0.75
"""By what factor a trial lowers it."""
LEAST_GROWTH = 0.4
"""A higher limit is kept if throughput grows by at least this share of what the limit grew by."""
LEAST_KEPT = 0.9
"""A lower limit is kept if at least this share of the throughput remains."""
OVERLOADED_SHARE = 0.1
"""The limit is halved when more than this share of calls end in overload."""
SHORT_SHARE = 0.05
"""Calls that take less than this share of their deadline, in the mean, are too short for a wrong step to cost much."""
SLOW_SHARE = 0.25
"""A lower limit is tried when calls take longer than this share of their deadline, in the mean."""
MOST_SHARE = 0.75
"""No trial may have calls take longer than this share of their deadline, should they have to queue."""
FIRST_REST_SECONDS = 2.0
LONGEST_REST_SECONDS = 30.0
"""After a failed trial the next one waits; twice as long after each failure, up to this."""
WINDOW_SECONDS = 10.0
"""While the limit stays, samples are taken anew so often,"""
WINDOW_ROUNDS = 4
SHORTEST_WINDOW_SECONDS = 1.0
"""or, but not sooner than this, after so many calls for each that may be in flight."""


class State(NamedTuple):
    """A limit, and the trial that it may be.

    Attributes:
        limit: Calls in flight at once.
        before: The limit to return to if the trial fails; 0 if this is no trial.
        step: Factor of the next trial of a higher limit.
        rest_seconds: For how long the limit stays after a failed trial.
        rested_seconds: For how long it has stayed, up to the present sample.
        slow: Whether a lower limit has been tried without effect since a higher one was: the calls are slow by themselves.
    """

    limit: int = START
    before: int = 0
    step: float = FIRST_STEP
    rest_seconds: float = 0.0
    rested_seconds: float = 0.0
    slow: bool = False

    @property
    def enough(self) -> int:
        """Answered calls before which the state is not judged."""
        return max(FEWEST_ANSWERED, self.limit // 2 if self.step == FIRST_STEP else self.limit)


class Sample(NamedTuple):
    """What is known of the calls that started since the limit was last changed, of all processes together.

    Attributes:
        seconds: Since the state began.
        ended: Calls that were answered, or ended in overload.
        overloaded: Those that ended in overload.
        latency: Seconds that the answered calls took together.
        compared: Seconds of those of them for which ``expected`` is known.
        expected: Seconds that equal calls took before the change; 0 where nothing is known of such calls.
    """

    seconds: float = 0.0
    ended: int = 0
    overloaded: int = 0
    latency: float = 0.0
    compared: float = 0.0
    expected: float = 0.0


def next_state(state: State, sample: Sample, *, demand: int, ceiling: int, deadline: float) -> State:
    """The state that follows; the same one where there is no reason to change.

    Args:
        state: The present one.
        sample: What was seen since it began.
        demand: Calls in flight and those that wait for a place: a limit that nobody reaches shows nothing.
        ceiling: The highest limit that is allowed.
        deadline: Seconds after which a call is given up.
    """
    if sample.overloaded > OVERLOADED_SHARE * max(sample.ended, state.limit / 2):
        return _after_overload(state)
    answered = sample.ended - sample.overloaded
    mean = sample.latency / max(1, answered)
    # Those that end first are those that waited least: where a wrong step costs much, as many as are in flight must end.
    costly = mean > SHORT_SHARE * deadline and answered < state.limit
    if answered < state.enough or costly:
        return state
    if state.before:
        after = _after_trial(state, sample, demand)
        go_on = after.limit > state.before and demand > after.limit
        return _higher(after, mean, ceiling, deadline) if go_on else after
    return _after_rest(state, sample, mean, demand=demand, ceiling=ceiling, deadline=deadline)


def is_failure(state: State, after: State) -> bool:
    """Whether a state ended because its trial failed: what was seen in it is not what later calls are compared with."""
    return bool(state.before) and after.limit == state.before


def _after_rest(
    state: State, sample: Sample, mean: float, *, demand: int, ceiling: int, deadline: float
) -> State:
    """The trial that follows a limit that has stayed long enough; else the same limit, perhaps with a new sample."""
    answered = sample.ended - sample.overloaded
    rested = state.rested_seconds + sample.seconds
    if rested >= state.rest_seconds:
        if mean > SLOW_SHARE * deadline and state.limit > 1 and not state.slow:
            return state._replace(limit=int(state.limit * LOWER_STEP), before=state.limit, rested_seconds=0.0)
        if demand > state.limit:
            return _higher(state, mean, ceiling, deadline)
    rounds_over = sample.seconds >= SHORTEST_WINDOW_SECONDS and answered >= WINDOW_ROUNDS * state.enough
    return state._replace(rested_seconds=rested) if rounds_over or sample.seconds >= WINDOW_SECONDS else state


def _after_overload(state: State) -> State:
    if 0 < state.before < state.limit:
        return _failed(state)
    halved = max(1, state.limit // 2)
    return State(halved, step=LATER_STEP, rest_seconds=_longer(state.rest_seconds))


def _after_trial(state: State, sample: Sample, demand: int) -> State:
    if not sample.expected or demand <= min(state.before, state.limit):
        return state._replace(limit=state.before, before=0)  # nothing was learned
    factor = state.limit / state.before
    throughput = factor * sample.expected / sample.compared
    if throughput < (1 + LEAST_GROWTH * (factor - 1) if factor > 1 else LEAST_KEPT):
        return _failed(state)
    step = min(FIRST_STEP, state.step * LATER_STEP) if factor > 1 else LATER_STEP
    return State(
        state.limit,
        step=step,
        rest_seconds=FIRST_REST_SECONDS if factor < 1 else 0.0,
        slow=state.slow and factor > 1,
    )


def _failed(state: State) -> State:
    if state.limit < state.before:
        return state._replace(limit=state.before, before=0, slow=True)
    return State(state.before, step=LATER_STEP, rest_seconds=_longer(state.rest_seconds))


def _higher(state: State, mean_latency: float, ceiling: int, deadline: float) -> State:
    """The trial of a higher limit, but of none at which calls would take too long if they had to queue."""
    step = min(state.step, max(LATER_STEP, MOST_SHARE * deadline / mean_latency))
    limit = min(ceiling, MOST, max(state.limit + 1, int(state.limit * step)))
    return (
        state._replace(limit=limit, before=state.limit, rested_seconds=0.0) if limit > state.limit else state
    )


def _longer(rest_seconds: float) -> float:
    return min(LONGEST_REST_SECONDS, max(FIRST_REST_SECONDS, 2 * rest_seconds))


@dataclass(slots=True)
class _Length:
    """Calls with replies of about the same length: their mean latency before the change, and what was seen since."""

    before: float = 0.0
    latency: float = 0.0
    answered: int = 0


class Latencies:
    """One process's part of the sample.

    Calls are compared by the length of their replies, in powers of two: a judge's single token against others such, an essay against
    essays.
    """

    __slots__ = (
        "_changed_at",
        "_lengths",
        "_lowered_at",
        "compared",
        "ended",
        "expected",
        "latency",
        "overloaded",
    )

    def __init__(self, now: float) -> None:
        self._lengths: dict[int, _Length] = {}
        self._changed_at = self._lowered_at = now
        self._clear()

    def answered(self, now: float, latency: float, output_tokens: int) -> None:
        """Takes in an answered call, unless it started before the limit was changed."""
        if now - latency < self._changed_at:
            return
        latency = max(latency, SHORTEST_SECONDS)
        bits = output_tokens.bit_length()
        length = self._lengths.get(bits)
        if length is None:
            length = self._lengths[bits] = _Length()
        length.latency += latency
        length.answered += 1
        self.ended += 1
        self.latency += latency
        if length.before:
            self.compared += latency
            self.expected += length.before

    def overload(self, now: float, latency: float) -> None:
        """Takes in a call that the provider was too busy for, unless the limit was lowered after it started."""
        if now - latency >= self._lowered_at:
            self.ended += 1
            self.overloaded += 1

    def take(self) -> Sample:
        """The part that nobody has taken yet."""
        sample = Sample(0.0, self.ended, self.overloaded, self.latency, self.compared, self.expected)
        self._clear()
        return sample

    def begin(self, now: float, before: State, after: State) -> None:
        """Begins a new sample, because a state follows another."""
        failed = is_failure(before, after)
        for length in self._lengths.values():
            if length.answered and not failed:
                length.before = length.latency / length.answered
            length.latency, length.answered = 0.0, 0
        if after.limit != before.limit:
            self._changed_at = now
            if after.limit < before.limit:
                self._lowered_at = now
        self._clear()

    def _clear(self) -> None:
        self.ended = self.overloaded = 0
        self.latency = self.compared = self.expected = 0.0
