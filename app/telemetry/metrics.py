"""The metrics of one process, by Prometheus's own library.

Labels name what an operator configured: connections, models, stages. No label holds a tenant's words. Model names come from jobs
where a connection allows any; so after :data:`MOST_MODELS` of them the rest counts as ``other``.
"""

import contextlib
import time

from prometheus_client import CollectorRegistry, Counter, Gauge

from app.telemetry.tallies import Calls, CallTallies

MOST_MODELS = 200
OTHER_MODEL = "other"
SHORTEST_WAIT_SECONDS = 0.0005
"""What takes less was no wait: to observe it would cost more than it took."""

REGISTRY = CollectorRegistry()
_MODEL = ("connection", "model")

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


_CALLS = CallTallies(_labels)
REGISTRY.register(_CALLS)


def calls_of(connection: str, model: str) -> Calls:
    """What is counted of the calls to a model, to be added to."""
    return _CALLS.of(connection, model)


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
        self._started = time.perf_counter()

    def __enter__(self) -> None:
        """Begins."""

    def __exit__(self, *_: object) -> None:
        """Ends."""
        seconds = time.perf_counter() - self._started
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
