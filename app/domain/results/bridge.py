"""From an old judge to a new one: how far they agree on the same texts, and what each total would be by the new one.

The new judge has judged some of the old one's texts, the anchors. A total by the new judge is estimated as figures are calibrated
with people's labels (:mod:`app.domain.statistics.prediction_powered`), the new judge in the place of the people: the old judge's
total of all texts, corrected by what the anchors show. So the interval is for these very texts.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from app.domain.contract import Answer
from app.domain.judging.grouped_reply import USABLE
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray, Metric
from app.domain.results.paired_verdicts import Clusters, Pair, PairedVerdicts, Position
from app.domain.statistics.prediction_powered import (
    FEWEST_LABELS,
    Calibrated,
    Population,
    Sample,
    calibrated,
)
from app.domain.statistics.resampling import unanimous

MetricName = Literal["acc_atom", "ic_atom", "mean"]
Finding = Literal["interchangeable", "different", "undecided"]
METRICS: tuple[MetricName, ...] = ("acc_atom", "ic_atom", "mean")
NOT_BRIDGED = {
    "rc_atom": "needs_all_runs: it compares the runs of a cell, of which a sample of texts has too few",
    "persona_score": "not_sentences: PersonaGym's grades are not bridged",
}


class Scored(NamedTuple):
    """A judge's scores of a response on one dimension.

    Attributes:
        sentences: Sentences with a score; at least one.
        total: Sum of the scores.
        squares: Sum of their squares.
        hits: How many lie in the persona's level.
    """

    sentences: int
    total: int
    squares: int
    hits: int

    def figure(self, metric: MetricName, width: int) -> float | None:
        """The response's figure; ``None`` where it has none."""
        if metric == "acc_atom":
            return self.hits / self.sentences
        if metric == "mean":
            return self.total / self.sentences
        if self.sentences == 1:
            return None
        variance = self.sentences * self.squares - self.total**2
        return float(1 - 2 * variance**0.5 / self.sentences / width)


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A response on one dimension, by the old judge.

    Attributes:
        place: (cell, run, item) in the old job.
        model: Its writer's label.
        task: Its task's id.
        dimension: Id of the dimension.
        level: The persona's level on it.
        scale: Its lowest and highest score.
        old: What the old judge gave it.
    """

    place: Position
    model: str
    task: str
    dimension: str
    level: str
    scale: tuple[int, int]
    old: Scored


class BridgeSide(Answer):
    """A judge in a job."""

    job: str
    judge: str


class BridgeAgreement(Answer):
    """How far the two judges agree on the same sentences, over all dimensions (`null`) or on one."""

    dimension: str | None
    scale: dict[str, int] = Field(description="`minimum` and `maximum`; each scale has its own row.")
    sentences: int = Field(description="Judged by both.")
    responses: int
    left_out: int = Field(description="Without a readable verdict of either.")
    exact_agreement: Metric
    mean_absolute_difference: Metric
    shift: Metric = Field(description="New − old, in points of the scale, where both gave a score.")
    quadratic_kappa: Metric
    acc_old: Metric = Field(description="Share of sentences in character by the old judge.")
    acc_new: Metric
    acc_shift: Metric = Field(description="New − old.")


class BridgedFigure(Answer):
    """A total by the old judge, and what the new one would give it."""

    group: dict[str, str] = Field(description="Empty for all texts; or `model`; or `task`.")
    metric: MetricName
    old: Metric = Field(description="By the old judge, of all texts: the mean over cells, as in results.")
    bridged: Metric = Field(description="An estimate of the figure by the new judge. It was not measured.")
    effect: Metric = Field(description="Bridged − old. Its interval is for these very texts.")
    anchors: int = Field(description="Responses that both judged.")
    finding: Finding | None = Field(
        description="`interchangeable`: the effect's 95 % interval lies within ± `within` of the figure's range. `different`: "
        "it lies outside. `undecided`: neither. `null` without an interval."
    )
    anchors_needed: int | None = Field(description="About how many anchors would decide, if undecided.")


class Bridge(Answer):
    """Two judges of the same texts: their agreement, and totals of the old judge as the new one would give them."""

    object: Literal["bridge"] = "bridge"
    old: BridgeSide
    new: BridgeSide
    texts: int = Field(
        description="Responses that the old judge scored, of those from which the anchors were drawn."
    )
    anchors: int = Field(
        description="Responses of the new job whose text the old job has, at the same place."
    )
    unpaired: int = Field(description="Answered responses of the new job without such a text.")
    within: float = Field(description="The margin, as a share of a figure's range.")
    agreement: list[BridgeAgreement] = Field(description="Intervals are over responses.")
    figures: list[BridgedFigure]
    not_bridged: dict[str, str] = Field(description="Figures that a sample can't bridge, with the reason.")
    interchangeable: bool | None = Field(
        description="Whether all figures are; `null` if one is undecided and none different."
    )
    recommendation: str = Field(description="In words.")


class BridgedPair(NamedTuple):
    """A sentence that both have judged: the new judge's verdict first."""

    dimension: str
    response: Position
    pair: Pair


def agreements(pairs: Iterable[BridgedPair], seed: int) -> list[BridgeAgreement]:
    """How far two judges agree, over all dimensions and by dimension.

    Args:
        pairs: The sentences; those of a response one after another.
        seed: Of the resamples.
    """
    groups: dict[tuple[str, int, int], PairedVerdicts] = defaultdict(PairedVerdicts)
    unread: dict[tuple[str, int, int], int] = defaultdict(int)
    responses = Clusters()
    for each in pairs:
        scale = each.pair.scale
        number = responses.number(each.response)
        for dimension in ("", each.dimension):
            key = dimension, scale.minimum, scale.maximum
            if each.pair.first.status in USABLE:
                groups[key].add(each.pair, number)
            else:
                unread[key] += 1
    weights = responses.weights(seed, "bridge")
    return [_agreement(key, groups[key], unread[key], weights) for key in sorted(groups)]


def _agreement(
    key: tuple[str, int, int], group: PairedVerdicts, unread: int, weights: FloatArray
) -> BridgeAgreement:
    dimension, minimum, maximum = key
    found = group.figures(maximum - minimum, weights)
    return BridgeAgreement(
        dimension=dimension or None,
        scale={"minimum": minimum, "maximum": maximum},
        sentences=group.sentences + unread,
        responses=group.responses,
        left_out=group.sentences + unread - found.sentences,
        exact_agreement=found.exact_agreement,
        mean_absolute_difference=found.mean_absolute_difference,
        shift=found.mean_difference,
        quadratic_kappa=found.quadratic_kappa,
        acc_old=found.acc_second,
        acc_new=found.acc_first,
        acc_shift=found.acc_difference,
    )


def bridged_figures(
    texts: Sequence[JudgedText], new: Mapping[tuple[Position, str], Scored | None], within: float
) -> list[BridgedFigure]:
    """Totals by the old judge, and as the new one would give them: of all texts, by model, by task.

    Args:
        texts: All of the old judge's.
        new: What the new judge gave the anchors, by place in the old job and dimension; ``None`` without a score.
        within: The margin, as a share of a figure's range.
    """
    metrics = [metric for metric in METRICS if metric != "mean" or len({text.scale for text in texts}) == 1]
    found: dict[MetricName, list[_Row]] = {metric: _rows(metric, texts, new) for metric in metrics}
    scale = next(iter({text.scale for text in texts}), (0, 1))
    ranges = {
        metric: (float(scale[0]), float(scale[1])) if metric == "mean" else (0.0, 1.0) for metric in metrics
    }
    return [
        _figure(
            metric,
            group,
            [row for row in found[metric] if group.items() <= row.of.items()],
            ranges[metric],
            within,
        )
        for group in _groups(texts)
        for metric in metrics
    ]


def _groups(texts: Sequence[JudgedText]) -> Iterator[dict[str, str]]:
    yield {}
    yield from ({"model": model} for model in sorted({text.model for text in texts}))
    yield from ({"task": task} for task in sorted({text.task for text in texts}))


class _Row(NamedTuple):
    """A response: its share of the total, and its figure by each judge; the new one's ``None`` where there is none."""

    of: dict[str, str]
    stratum: tuple[str, str, str, str]
    weight: float
    old: float
    new: float | None
    anchor: bool


def _figure(
    metric: MetricName,
    group: dict[str, str],
    rows: Sequence[_Row],
    bounds: tuple[float, float],
    within: float,
) -> BridgedFigure:
    anchors = sum(row.anchor for row in rows)
    if not rows:
        none = Metric.missing("no_scored_sentence: the old judge scored no sentence")
        return _told(group, metric, none, none, none)
    shares = sum(row.weight for row in rows)
    old = Metric.of(sum(row.weight * row.old for row in rows) / shares, len(rows))
    found = _estimate(rows, shares) if anchors else None
    if found is None:
        none = Metric.missing("no_anchor: no text of these was scored by both judges")
        return _told(group, metric, old, none, none, anchors)
    (low, high), change = bounds, found.value - found.judged
    interval = found.interval(bounds)
    if anchors == len(rows):  # however few: all of them are known
        interval = Interval.around(found.value, found.value, found.value, bounds)
    elif interval.ends is None:
        interval = Interval.missing(f"too_few_anchors: {anchors} texts; an interval needs {FEWEST_LABELS}")
    moved, finding, needed = interval, None, None
    if interval.ends is not None:
        least, most = (end - found.judged for end in interval.ends)
        moved = Interval.around(change, least, most, (low - high, high - low))
        margin = within * (high - low)
        finding = _finding((least, most), margin)
        if finding == "undecided":
            needed = _anchors_needed(found, len(rows), margin, bounds)
    bridged = Metric.of(found.value, anchors).within(interval)
    return _told(
        group, metric, old, bridged, Metric.of(change, anchors).within(moved), anchors, finding, needed
    )


def _told(
    group: dict[str, str],
    metric: MetricName,
    old: Metric,
    bridged: Metric,
    effect: Metric,
    anchors: int = 0,
    finding: Finding | None = None,
    needed: int | None = None,
) -> BridgedFigure:
    return BridgedFigure(
        group=group,
        metric=metric,
        old=old,
        bridged=bridged,
        effect=effect,
        anchors=anchors,
        finding=finding,
        anchors_needed=needed,
    )


def _finding(effect: tuple[float, float], margin: float) -> Finding:
    """Two one-sided tests (Schuirmann, 1987) at 2.5 % each: the interval lies within the margin; or wholly beyond it."""
    low, high = effect
    if -margin <= low and high <= margin:
        return "interchangeable"
    return "different" if low > margin or high < -margin else "undecided"


def _anchors_needed(found: Calibrated, texts: int, margin: float, bounds: tuple[float, float]) -> int:
    """About how many anchors would decide what these leave open: more than there are, at most all texts."""

    def decides(anchors: int) -> bool:
        low, high = unanimous(found.value, anchors, bounds).ends or bounds
        return _finding((low - found.judged, high - found.judged), margin) != "undecided"

    more = range(found.labels + 1, texts)
    if found.unanimous:
        return found.labels + 1 + bisect_left(more, True, key=decides)
    distance = abs(margin - abs(found.value - found.judged))
    return min(max(found.labels_for(distance, bounds)[0], found.labels + 1), texts) if distance else texts


def _rows(
    metric: MetricName, texts: Sequence[JudgedText], new: Mapping[tuple[Position, str], Scored | None]
) -> list[_Row]:
    """The responses that have the figure by the old judge, each counting as it does in a mean over runs, then cells."""
    values: dict[tuple[int, str], dict[int, list[tuple[JudgedText, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for text in texts:
        value = text.old.figure(metric, text.scale[1] - text.scale[0])
        if value is not None:
            values[text.place[0], text.dimension][text.place[1]].append((text, value))
    parts: dict[Position, list[tuple[float, JudgedText, float]]] = defaultdict(list)
    for runs in values.values():
        for of_run in runs.values():
            for text, value in of_run:
                parts[text.place].append((1 / len(values) / len(runs) / len(of_run), text, value))
    return [_row(metric, own, new) for own in parts.values()]


def _row(
    metric: MetricName,
    parts: Sequence[tuple[float, JudgedText, float]],
    new: Mapping[tuple[Position, str], Scored | None],
) -> _Row:
    """A response whose persona has several traits is one draw: its dimensions are taken together."""
    weight = sum(part for part, _, _ in parts)
    found: list[tuple[float, float]] = []
    for part, text, _ in parts:
        scored = new.get((text.place, text.dimension))
        value = None if scored is None else scored.figure(metric, text.scale[1] - text.scale[0])
        if value is not None:
            found.append((part, value))
    first = parts[0][1]
    said = sum(part * value for part, value in found) / sum(part for part, _ in found) if found else None
    return _Row(
        of={"model": first.model, "task": first.task},
        stratum=(first.model, first.task, first.dimension, first.level),
        weight=weight,
        old=sum(part * value for part, _, value in parts) / weight,
        new=said,
        anchor=any((text.place, text.dimension) in new for _, text, _ in parts),
    )


def _estimate(rows: Sequence[_Row], shares: float) -> Calibrated | None:
    numbers = dict(zip(sorted({row.stratum for row in rows}), count(), strict=False))
    anchors = [row for row in rows if row.anchor]
    population = Population(
        strata=np.array([numbers[row.stratum] for row in rows], dtype=np.int64),
        counts=np.ones(len(rows)),
        weights=np.array([row.weight / shares for row in rows]),
        predicted=np.array([row.old for row in rows]),
    )
    sample = Sample(
        strata=np.array([numbers[row.stratum] for row in anchors], dtype=np.int64),
        stands_for=np.full(len(anchors), len(rows) / len(anchors)),
        weights=np.array([row.weight / shares for row in anchors]),
        predicted=np.array([row.old for row in anchors]),
        said=np.array([np.nan if row.new is None else row.new for row in anchors]),
    )
    return calibrated(population, sample)


def decided(figures: Sequence[BridgedFigure]) -> bool | None:
    """Whether the judges are interchangeable: all figures with an interval are, or one is different; ``None`` if that is open.

    Those of all texts must have one; a model or a task may have too few anchors.
    """
    findings = {figure.finding for figure in figures if figure.finding is not None or not figure.group}
    if "different" in findings:
        return False
    return True if findings == {"interchangeable"} else None


def recommendation(figures: Sequence[BridgedFigure], within: float) -> str:
    """What to do, in words."""
    margin = f"± {within * 100:g} % of each figure's range"
    found = decided(figures)
    if found:
        return f"Interchangeable within {margin}: every total's 95 % interval of the change lies inside."
    if found is False:
        worst = [figure for figure in figures if figure.finding == "different"]
        return (
            f"Not interchangeable within {margin}: {_listed(worst)}. Compare earlier results only with bridged figures,"
            " or judge all texts again by the new judge."
        )
    unsure = [
        figure for figure in figures if figure.finding == "undecided" or not (figure.group or figure.finding)
    ]
    needed = max((figure.anchors_needed or 0 for figure in unsure), default=0)
    more = f" About {needed:,} anchors for each of them would decide." if needed else ""
    return (
        f"Not shown to be interchangeable within {margin}. Undecided: {_listed(unsure)}.{more} Until then compare"
        " earlier results only with bridged figures."
    )


MOST_LISTED = 4


def _listed(figures: Sequence[BridgedFigure]) -> str:
    """The figures, those of all texts first, with their changes."""
    told = [
        f"{figure.metric}{_of(figure.group)}"
        + ("" if figure.effect.value is None else f" changes by {_signed(figure.effect.value)}")
        for figure in figures[:MOST_LISTED]
    ]
    more = len(figures) - len(told)
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _signed(change: float) -> str:
    """With its sign; what rounds to nothing has none."""
    return f"{change:+z.3f}".replace("+0.000", "0.000")


def _of(group: Mapping[str, str]) -> str:
    return "".join(f" of {value}" for value in group.values())
