"""Two models on the same personas, tasks and dimensions: which pairs there are, and what their differences say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from app.domain.metrics.definition import Family
from app.domain.metrics.registry import names, range_of
from app.domain.personagym.scores import SCORES
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.paired import PairedDifference, holm, paired_difference

Json = Mapping[str, Any]

METRICS = names(Family.ATOMIC, Family.RESPONSE, Family.SCORE)
"""Of cells, the ones that matter most first."""
PERSONA_SCORE, TASK_SCORE = "persona_score", "task_score"
SEED = 0


class Place(NamedTuple):
    """What two figures must share to be a pair; empty where the figure has no such part."""

    persona: str
    task: str
    dimension: str
    level: str
    item: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one model.

    Attributes:
        value: ``None`` where there is none.
        reason: Why there is none.
        scale: Ends of the scale on which it lies.
    """

    value: float | None
    reason: str | None
    scale: tuple[float, float]


Figures = Mapping[tuple[str, Place], Figure]
"""A model's figures by metric and place."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A figure without a partner.

    Attributes:
        metric: Its metric.
        place: Its place.
        reason: ``"code: words"``.
    """

    metric: str
    place: Place
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """One metric's difference, over all tasks or in one.

    Attributes:
        metric: The metric.
        task: The task; ``None`` for all together.
        a: The mean of the first model's figures that have a partner.
        b: The second's.
        difference: a − b.
        p_holm: The p-value corrected for all rows of the same kind (all tasks together, or single tasks).
        over_items: The same difference, items being what is drawn anew; ``None`` where figures are not by item.
        p_holm_items: Its p-value, corrected likewise.
    """

    metric: str
    task: str | None
    a: float
    b: float
    difference: PairedDifference
    p_holm: float | None = None
    over_items: PairedDifference | None = None
    p_holm_items: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every metric's difference and what was left out on the way to it."""

    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]


def figures_of(results: Json, model: str) -> dict[tuple[str, Place], Figure]:
    """One model's figures in a results document."""
    found: dict[tuple[str, Place], Figure] = {}
    for cell in results["cells"]:
        if cell["model"] != model:
            continue
        scale = (float(cell["scale"]["minimum"]), float(cell["scale"]["maximum"]))
        place = Place(cell["persona"], cell["task"], cell["dimension"], cell["level"])
        for name in METRICS:
            if name in cell["metrics"]:
                found[name, place] = _figure(cell["metrics"][name], range_of(name, scale))
    for row in results["persona_scores"]:
        if row["model"] != model:
            continue
        whole = Place(row["persona"], "", "", "")
        # A mean over other tasks is another measure, so its tasks are part of its place.
        tasks = "+".join(sorted(row["tasks"]))
        found[PERSONA_SCORE, whole._replace(level=tasks)] = _figure(row["persona_score"], SCORES)
        for task, score in row["tasks"].items():
            found[TASK_SCORE, whole._replace(task=task)] = _figure(score, SCORES)
    return found


def compare(a: Figures, b: Figures) -> Comparison:
    """Pairs two models' figures and sums up their differences, metric by metric.

    Args:
        a: The first model's figures.
        b: The second's.
    """
    left_out: list[LeftOut] = []
    pairs: dict[tuple[str, Place], tuple[float, float, float]] = {}
    for metric, place in sorted(a.keys() | b.keys()):
        one, other = a.get((metric, place)), b.get((metric, place))
        reason = _obstacle(one, other)
        if reason is not None:
            left_out.append(LeftOut(metric, place, reason))
        elif one is not None and other is not None and one.value is not None and other.value is not None:
            pairs[metric, place] = one.value, other.value, one.scale[1] - one.scale[0]
    if not pairs:
        return Comparison((), tuple(left_out))
    samples = _Samples(
        PersonaSample([place.persona for _, place in pairs], SEED),
        PersonaSample([_asked(place) for _, place in pairs], SEED)
        if any(place.item for _, place in pairs)
        else None,
    )
    names = [name for name in (PERSONA_SCORE, *METRICS) if any(metric == name for metric, _ in pairs)]
    overall = [_row(name, None, pairs, samples) for name in names]
    single = [
        _row(metric, task, pairs, samples)
        for metric, task in sorted({(metric, place.task) for metric, place in pairs if place.task})
    ]
    return Comparison((*_corrected(overall), *_corrected(single)), tuple(left_out))


def comparison_json(found: Comparison) -> dict[str, list[dict[str, Any]]]:
    """A comparison in the HTTP contract's form."""
    return {
        "differences": [_row_json(row) for row in found.rows],
        "left_out": [
            {
                "metric": each.metric,
                "persona": each.place.persona,
                "task": each.place.task or None,
                "dimension": each.place.dimension or None,
                "item": each.place.item or None,
                "reason": each.reason,
            }
            for each in found.left_out
        ],
    }


@dataclass(frozen=True, slots=True)
class _Samples:
    """What is drawn anew: personas, each with all its pairs, or what a persona was asked, each with its pairs."""

    personas: PersonaSample
    items: PersonaSample | None


def _asked(place: Place) -> str:
    """What tells one item of one persona from any other; dimensions that share an answer share it."""
    return f"{place.persona}\0{place.task}\0{place.item}"


def _figure(metric: Json, scale: tuple[float, float]) -> Figure:
    return Figure(metric["value"], metric.get("reason"), scale)


def _obstacle(one: Figure | None, other: Figure | None) -> str | None:
    """Why two figures make no pair; ``None`` if they do."""
    if one is None or other is None:
        side = "a" if one is None else "b"
        return f"not_in_{side}: {side} has no such persona, task and dimension"
    for side, figure in (("a", one), ("b", other)):
        if figure.value is None:
            return f"no_value_in_{side}: {(figure.reason or 'no reason given').partition(': ')[2]}"
    if one.scale != other.scale:
        return "other_scale: the two are scored on different scales"
    return None


def _row(
    metric: str,
    task: str | None,
    pairs: Mapping[tuple[str, Place], tuple[float, float, float]],
    samples: _Samples,
) -> Row:
    found = [
        (place, *pair)
        for (name, place), pair in pairs.items()
        if name == metric and task in {None, place.task}
    ]
    width = max(width for *_, width in found)
    by_persona = [(place.persona, one - other) for place, one, other, _ in found]
    by_item = [(_asked(place), one - other) for place, one, other, _ in found]
    return Row(
        metric=metric,
        task=task,
        a=sum(one for _, one, _, _ in found) / len(found),
        b=sum(other for _, _, other, _ in found) / len(found),
        difference=paired_difference(by_persona, width, samples.personas, SEED),
        over_items=None
        if samples.items is None
        else paired_difference(by_item, width, samples.items, SEED, of="items"),
    )


def _corrected(rows: Sequence[Row]) -> list[Row]:
    corrected = holm([row.difference.p_value for row in rows])
    of_items = holm([None if row.over_items is None else row.over_items.p_value for row in rows])
    return [
        replace(row, p_holm=p, p_holm_items=p_items)
        for row, p, p_items in zip(rows, corrected, of_items, strict=True)
    ]


def _row_json(row: Row) -> dict[str, object]:
    difference = row.difference
    return {
        "metric": row.metric,
        "task": row.task,
        "a": row.a,
        "b": row.b,
        "difference": difference.value,
        "pairs": difference.pairs,
        "personas": difference.clusters,
        **_evidence(difference, row.p_holm),
        "over_items": None
        if row.over_items is None
        else {"items": row.over_items.clusters, **_evidence(row.over_items, row.p_holm_items)},
    }


def _evidence(difference: PairedDifference, p_holm: float | None) -> dict[str, object]:
    """How sure a difference is."""
    interval = difference.interval
    return {
        "ci95": interval.ends and list(interval.ends),
        "ci95_reason": interval.reason,
        "p_value": difference.p_value,
        "p_value_holm": p_holm,
        "smallest_p_value": difference.smallest_p_value,
        "smallest_detectable": difference.detectable,
        "smallest_detectable_reason": difference.detectable_reason,
    }
