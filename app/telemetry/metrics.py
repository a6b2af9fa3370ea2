"""The metrics of one process, by Prometheus's own library.

Labels name what an operator configured: connections, models, stages. No label holds a tenant's words. Model names come from jobs
where a connection allows any; so after :data:`MOST_MODELS` of them the rest counts as ``other``.
"""

import contextlib
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from app import clock

MOST_MODELS = 200
OTHER_MODEL = "other"
SHORTEST_WAIT_SECONDS = 0.0005
"""What takes less was no wait: to observe it would cost more than it took."""

REGISTRY = CollectorRegistry()
_MODEL = ("connection", "model")

_CALL_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, math.inf)
_WAIT_BOUNDS = (0.005, 0.05, 0.25, 1.0, 5.0, 30.0, 120.0, 600.0, math.inf)
_IN_FLIGHT = Gauge("assay_calls_in_flight", "Calls on the wire.", _MODEL, registry=REGISTRY)
_PAUSES = Counter(
    "assay_limiter_pauses_total", "Pauses that this process imposed on all.", _MODEL, registry=REGISTRY
)
_LIMIT = Gauge(
    "assay_limit_per_minute",
    "Requests or tokens a minute in force for all processes together; absent where there is no limit.",
    ["what", *_MODEL],
    registry=REGISTRY,
)
LIMITER_UNAVAILABLE = Counter(
    "assay_limiter_unavailable_total",
    "Attempts to get a permit that failed because Redis was away.",
    registry=REGISTRY,
)
READER_ENDS = Counter(
    "assay_reader_ends_total",
    "Readers of files that were ended: by a limit (`memory`, `time`), a crash, a failure, or something else (`lost`).",
    ["cause"],
    registry=REGISTRY,
)
LAPSED_SLOTS = Counter(
    "assay_limiter_lapsed_slots_total",
    "Permits given up because the process was too busy to use them in time.",
    registry=REGISTRY,
)
EMPTY_LEASES = Counter(
    "assay_limiter_empty_leases_total",
    "Leases of the rate limiter that let no call go, because the process was too busy or a hold came.",
    registry=REGISTRY,
)
SURPLUS_REPLIES = Counter(
    "assay_surplus_replies_total",
    "Network connections closed because the server sent bytes that no request was waiting for.",
    ["connection"],
    registry=REGISTRY,
)
LEASES_LOST = Counter(
    "assay_leases_lost_total",
    "Shards whose lease this process lost while it worked on them.",
    registry=REGISTRY,
)
SHARD_FAILURES = Counter(
    "assay_shard_failures_total", "Shards given back because of an internal error.", registry=REGISTRY
)
ROWS_LOST = Counter(
    "assay_rows_lost_total",
    "Result rows that the database would not take; they are made again.",
    registry=REGISTRY,
)
WRITER_BACKLOG = Gauge("assay_writer_backlog_rows", "Result rows that wait to be written.", registry=REGISTRY)
LOOP_LAG = Gauge(
    "assay_loop_lag_seconds", "Longest delay of the event loop since the last report.", registry=REGISTRY
)
ANNOUNCED_AGAIN = Counter(
    "assay_shards_announced_again_total", "Shards that the sweeper announced once more.", registry=REGISTRY
)
_WEBHOOK_ATTEMPTS = Counter(
    "assay_webhook_attempts_total", "Attempts to deliver a message.", ["outcome"], registry=REGISTRY
)
KEYS_REFUSED = Counter(
    "assay_keys_refused_total", "Requests with an API key or session that was refused.", registry=REGISTRY
)
_HTTP = Counter("assay_http_requests_total", "Requests to the API.", ["method", "status"], registry=REGISTRY)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

_models: set[tuple[str, str]] = set()


def _labels(connection: str, model: str) -> tuple[str, str]:
    """The labels of a model: its names, or ``other`` where there are too many."""
    if (connection, model) not in _models:
        if len(_models) >= MOST_MODELS:
            return OTHER_MODEL, OTHER_MODEL
        _models.add((connection, model))
    return connection, model


class _Times:
    """A histogram.

    Args:
        bounds: Upper bounds of its buckets in seconds, ascending; the last is infinite.
    """

    __slots__ = ("_bounds", "_numbers", "_seconds")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._numbers = [0] * len(bounds)
        self._seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count a time."""
        self._numbers[bisect_left(self._bounds, seconds)] += 1
        self._seconds += seconds

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Add the cumulated buckets to a family of metrics."""
        buckets = zip(map(floatToGoString, self._bounds), accumulate(self._numbers), strict=True)
        family.add_metric(labels, [(bound, float(number)) for bound, number in buckets], self._seconds)


class Calls:
    """The calls to one model, or to all that are shown as ``other``.

    Belongs to one thread. Finding a counter by its labels, and locking it, takes longer than counting: the sums are
    kept here, and a scrape reads them.

    Attributes:
        labels: Connection and model.
        in_flight: On the wire now.
        attempts: Number of attempts by stage and outcome.
        seconds: Times from sending a call to its outcome.
        waits: Times that calls waited, by what for.
        tokens_in: Known tokens of prompts.
        tokens_out: Known tokens of replies.
        usd: Known cost.
    """

    __slots__ = (
        "attempts", "in_flight", "labels", "seconds", "tokens_in", "tokens_out", "usd", "waits",
    )  # fmt: skip

    def __init__(self, labels: tuple[str, str]) -> None:
        self.labels = labels
        self.attempts: dict[tuple[str, str], int] = {}
        self.seconds = _Times(_CALL_BOUNDS)
        self.waits: dict[str, _Times] = {}
        self.tokens_in = self.tokens_out = 0
        self.usd = 0.0
        self.in_flight = 0
        _IN_FLIGHT.labels(*labels).set_function(lambda: self.in_flight)

    def ended(self, stage: str, outcome: str, seconds: float, usd: float | None) -> None:
        """Counts an attempt at a call.

        Args:
            stage: The stage of the job.
            outcome: ``ok`` or a kind of failure; see :class:`app.ports.FailureKind`.
            seconds: How long it took.
            usd: What it cost; ``None`` where that is unknown.
        """
        attempt = (stage, outcome)
        self.attempts[attempt] = self.attempts.get(attempt, 0) + 1
        self.seconds.observe(seconds)
        if usd:
            self.usd += usd

    def took(self, tokens_in: int | None, tokens_out: int | None) -> None:
        """Counts a call's tokens; ``None`` where they are unknown."""
        if tokens_in:
            self.tokens_in += tokens_in
        if tokens_out:
            self.tokens_out += tokens_out

    def waited(self, limiter: str, seconds: float) -> None:
        """Counts a wait."""
        waits = self.waits.get(limiter)
        if waits is None:
            waits = self.waits[limiter] = _Times(_WAIT_BOUNDS)
        waits.observe(seconds)


_calls: dict[tuple[str, str], Calls] = {}


class _Sums(Collector):
    """The counters and histograms that :class:`Calls` keep."""

    def collect(self) -> Iterator[Metric]:
        """Return the sums so far; a cost only where one is known."""
        attempts = CounterMetricFamily(
            "assay_calls", "Attempts at provider calls.", labels=[*_MODEL, "stage", "outcome"]
        )
        tokens = CounterMetricFamily("assay_tokens", "Known tokens of calls.", labels=["what", *_MODEL])
        cost = CounterMetricFamily("assay_cost_usd", "Known cost of calls in US dollars.", labels=_MODEL)
        took = HistogramMetricFamily(
            "assay_call_seconds", "Time from sending a call to its outcome.", labels=_MODEL
        )
        waited = HistogramMetricFamily(
            "assay_wait_seconds",
            "Time that calls waited, if they had to: for the database's writer, this process's or all processes' calls in"
            " flight, the rate limit.",
            labels=["limiter", *_MODEL],
        )
        for calls in list(_calls.values()):
            for attempt, number in list(calls.attempts.items()):
                attempts.add_metric([*calls.labels, *attempt], number)
            tokens.add_metric(["input", *calls.labels], calls.tokens_in)
            tokens.add_metric(["output", *calls.labels], calls.tokens_out)
            if calls.usd:
                cost.add_metric(calls.labels, calls.usd)
            calls.seconds.add_to(took, calls.labels)
            for limiter, times in list(calls.waits.items()):
                times.add_to(waited, [limiter, *calls.labels])
        yield from (attempts, tokens, cost, took, waited)


REGISTRY.register(_Sums())


def calls_of(connection: str, model: str) -> Calls:
    """What is counted of the calls to a model, to be added to."""
    labels = _labels(connection, model)
    known = _calls.get(labels)
    if known is None:
        known = _calls[labels] = Calls(labels)
    return known


class waiting:  # noqa: N801 - used like a function
    """Measures a wait, also one that is given up.

    Args:
        limiter: What is waited for.
        calls: Where it is counted.
    """

    __slots__ = ("_calls", "_limiter", "_started")

    def __init__(self, limiter: str, calls: Calls) -> None:
        self._limiter = limiter
        self._calls = calls
        self._started = clock.monotonic()

    def __enter__(self) -> None:
        """Begins."""

    def __exit__(self, *_: object) -> None:
        """Ends."""
        seconds = clock.monotonic() - self._started
        if seconds >= SHORTEST_WAIT_SECONDS:
            self._calls.waited(self._limiter, seconds)


def count_pause(connection: str, model: str) -> None:
    """Counts a pause of everybody's calls to a model."""
    _PAUSES.labels(*_labels(connection, model)).inc()


def show_limit(what: str, connection: str, model: str, per_minute: float | None) -> None:
    """Shows the limit in force; ``None`` for no limit."""
    labels = (what, *_labels(connection, model))
    if per_minute is None:
        with contextlib.suppress(KeyError):  # it was never shown
            _LIMIT.remove(*labels)
    else:
        _LIMIT.labels(*labels).set(per_minute)


def count_webhook_attempt(outcome: str) -> None:
    """Counts an attempt to deliver a message: ``delivered``, ``retry`` or ``given_up``."""
    _WEBHOOK_ATTEMPTS.labels(outcome).inc()


def count_request(method: str, status: int) -> None:
    """Counts a request to the API."""
    _HTTP.labels(method if method in _METHODS else "other", str(status)).inc()
