"""What is counted at every call, by plain addition: a process's metrics library would take a lock for each number.

Whoever asks for the metrics makes the library's families of it. Belongs to the loop that makes the calls.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

_MODEL = ("connection", "model")
_CALL_BOUNDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_WAIT_BOUNDS = (0.005, 0.05, 0.25, 1, 5, 30, 120, 600)

Labels = tuple[str, str]
"""Connection and model."""


class Seconds:
    """A histogram of times.

    Args:
        bounds: Upper bounds of its buckets but for the last, which has none.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Counts a time."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def show(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        """Puts the histogram into a family."""
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        family.add_metric(labels, list(zip(names, accumulate(self._counts), strict=True)), self._sum)


class Calls:
    """The calls to one model.

    Attributes:
        in_flight: On the wire now.
        outcomes: Attempts by stage and outcome.
        seconds: From sending a call to its outcome.
        waits: By what was waited for.
        tokens_in: Known tokens of prompts.
        tokens_out: Known tokens of answers.
        usd: Known cost.
    """

    __slots__ = ("in_flight", "outcomes", "seconds", "tokens_in", "tokens_out", "usd", "waits")

    def __init__(self) -> None:
        self.in_flight = 0
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.seconds = Seconds(_CALL_BOUNDS)
        self.waits: dict[str, Seconds] = {}
        self.tokens_in = 0
        self.tokens_out = 0
        self.usd = 0.0

    def ended(self, stage: str, outcome: str, seconds: float, usd: float | None) -> None:
        """Counts an attempt at a call.

        Args:
            stage: The stage of the job.
            outcome: ``ok`` or a kind of failure; see :class:`app.ports.FailureKind`.
            seconds: How long it took.
            usd: What it cost; ``None`` where that is unknown.
        """
        self.outcomes[stage, outcome] += 1
        self.seconds.add(seconds)
        if usd:
            self.usd += usd

    def took(self, tokens_in: int | None, tokens_out: int | None) -> None:
        """Counts a call's tokens; ``None`` where they are unknown."""
        self.tokens_in += tokens_in or 0
        self.tokens_out += tokens_out or 0

    def waited(self, limiter: str, seconds: float) -> None:
        """Counts a wait."""
        known = self.waits.get(limiter)
        if known is None:
            known = self.waits[limiter] = Seconds(_WAIT_BOUNDS)
        known.add(seconds)


class CallTallies(Collector):
    """The calls to all models.

    Args:
        labels: Under which names a model is shown: few, however many models there are.
    """

    def __init__(self, labels: Callable[[str, str], Labels]) -> None:
        self._labels = labels
        self._shown: dict[Labels, Calls] = {}

    def of(self, connection: str, model: str) -> Calls:
        """The calls to a model; several may be shown, and so counted, as one."""
        known = self._shown.get((connection, model))
        if known is not None:
            return known
        return self._shown.setdefault(self._labels(connection, model), Calls())

    def collect(self) -> Iterator[Metric]:
        """Part of prometheus_client's Collector."""
        attempts = CounterMetricFamily(
            "assay_calls", "Attempts at provider calls.", labels=[*_MODEL, "stage", "outcome"]
        )
        seconds = HistogramMetricFamily(
            "assay_call_seconds", "Time from sending a call to its outcome.", labels=_MODEL
        )
        waits = HistogramMetricFamily(
            "assay_wait_seconds",
            "Time that calls waited, if they had to: for the database's writer, this process's or all processes' calls in flight, the rate limit.",
            labels=["limiter", *_MODEL],
        )
        in_flight = GaugeMetricFamily("assay_calls_in_flight", "Calls on the wire.", labels=_MODEL)
        tokens = CounterMetricFamily("assay_tokens", "Known tokens of calls.", labels=["what", *_MODEL])
        cost = CounterMetricFamily("assay_cost_usd", "Known cost of calls in US dollars.", labels=_MODEL)
        for labels, calls in self._shown.items():
            for (stage, outcome), count in calls.outcomes.items():
                attempts.add_metric([*labels, stage, outcome], count)
            calls.seconds.show(seconds, labels)
            for limiter, waited in calls.waits.items():
                waited.show(waits, [limiter, *labels])
            in_flight.add_metric(labels, calls.in_flight)
            tokens.add_metric(["input", *labels], calls.tokens_in)
            tokens.add_metric(["output", *labels], calls.tokens_out)
            if calls.usd:
                cost.add_metric(labels, calls.usd)
        yield from (attempts, seconds, waits, in_flight, tokens, cost)
