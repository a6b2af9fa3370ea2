"""Metrics of several processes as one text that Prometheus reads."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Figures(NamedTuple):
    """A gauge that is read when it is asked for.

    Attributes:
        name: Of the metric.
        help: What it is, with its unit.
        labels: Names of its labels.
        values: The labels' values with the value.
    """

    name: str
    help: str
    labels: Sequence[str]
    values: Sequence[tuple[Sequence[str], float]]


def snapshot(registry: CollectorRegistry) -> str:
    """A process's metrics as JSON."""
    return json.dumps(
        [
            [
                metric.name,
                metric.type,
                metric.documentation,
                [[s.name, s.labels, s.value] for s in metric.samples if not s.name.endswith("_created")],
            ]
            for metric in registry.collect()
        ]
    )


def render(snapshots: Mapping[str, str], figures: Iterable[Figures]) -> bytes:
    """The text of all processes' snapshots, each labelled with its process, and of figures that have none."""
    families: dict[str, Metric] = {}
    for process, encoded in sorted(snapshots.items()):
        for name, kind, documentation, samples in json.loads(encoded):
            family = families.setdefault(name, Metric(name, documentation, kind))
            for sample, labels, value in samples:
                family.add_sample(sample, labels | {"process": process}, value)
    registry = CollectorRegistry()
    registry.register(_Fixed([*families.values(), *map(_gauge, figures)]))
    return generate_latest(registry)


class _Fixed(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def _gauge(figures: Figures) -> Metric:
    family = GaugeMetricFamily(figures.name, figures.help, labels=figures.labels)
    for labels, value in figures.values:
        family.add_metric(labels, value)
    return family
