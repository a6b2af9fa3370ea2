"""An old judge's totals as a new one would give them, estimated from the texts that both have judged, the anchors.

As figures are calibrated with people's labels (:mod:`app.domain.statistics.prediction_powered`), the new judge in the place of the
people: the old judge's total of all texts, corrected by what the anchors show. So an interval is for these very texts.

Metrics that are means over texts need no more. RC_atom is a mean over pairs of runs: of anchors that were drawn in whole pairs
each pair shows one of its cell's pairs, as likely as any other, by both judges.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.personagym.scores import SCORES
from app.domain.results.bridge import BridgedFigure, Finding, MetricName
from app.domain.results.twice_judged import BoolArray, JudgedCell, TwiceJudged, consistency, distinct
from app.domain.statistics.prediction_powered import (
    FEWEST_LABELS,
    Calibrated,
    Population,
    Sample,
    calibrated,
)

Drawn = Literal["texts", "pairs of runs"]
TEXTS: Drawn = "texts"
PAIRS: Drawn = "pairs of runs"
OF_SENTENCES: tuple[MetricName, ...] = ("acc_atom", "ic_atom", "rc_atom", "mean")
RC_NOT_BRIDGED = (
    "needs_pairs_of_runs: it compares the runs of a cell; draw the anchors in whole pairs of runs"
)
NO_OLD = "no_scored_sentence: the old judge scored none of them"
NO_ANCHOR = "no_anchor: no text of these was scored by both judges"


def bridged_sentences(texts: TwiceJudged, within: float, drawn: Drawn) -> list[BridgedFigure]:
    """Totals of what sentences got: of all texts, by model, by task.

    Args:
        texts: All of the old judge's.
        within: The margin, as a share of a figure's range.
        drawn: What was drawn at once. RC_atom is only there of whole pairs of runs, or where all texts are anchors.
    """
    scales = {texts.cells[n].scale for n in np.unique(texts.cell).tolist()}
    metrics = [
        metric
        for metric in OF_SENTENCES
        if (metric != "mean" or len({(scale.minimum, scale.maximum) for scale in scales}) == 1)
        and (metric != "rc_atom" or (several_runs(texts) and (drawn == PAIRS or texts.anchor.all())))
    ]
    figures = []
    for metric in metrics:
        scale = next(iter(scales))
        bounds = {"mean": (float(scale.minimum), float(scale.maximum)), "rc_atom": (-1.0, 1.0)}
        made = _Metric(metric, texts, bounds.get(metric, (0.0, 1.0)), drawn)
        figures += [made.figure(group, kept, within) for group, kept in _groups(texts)]
    order = list(OF_SENTENCES)
    return sorted(figures, key=lambda each: (*_rank(each.group), order.index(each.metric)))


def bridged_grades(texts: TwiceJudged, within: float, drawn: Drawn) -> list[BridgedFigure]:
    """PersonaScores: over all tasks for personas that have each task, of all models and by model; and by task."""
    made = _Metric("persona_score", texts, SCORES, drawn)
    complete = _with_all_tasks(texts)
    return [
        made.figure(group, kept if "task" in group else kept & complete, within)
        for group, kept in _groups(texts)
    ]


def several_runs(texts: TwiceJudged) -> bool:
    """Whether there is a cell of which runs can be compared."""
    return any(np.ptp(texts.run[place]) > 0 for _, place in texts.by_cell())


def _rank(group: dict[str, str]) -> tuple[int, str]:
    return len(group) + ("task" in group), "".join(group.values())


def _groups(texts: TwiceJudged) -> Iterator[tuple[dict[str, str], BoolArray]]:
    """All texts, each model's and each task's, with the rows that these are."""
    yield {}, np.ones(len(texts.cell), dtype=bool)
    for name in ("model", "task"):
        of_cell = np.array([getattr(cell, name) for cell in texts.cells], dtype=object)
        for value in sorted(set(of_cell[np.unique(texts.cell)].tolist())):
            yield {name: value}, (of_cell == value)[texts.cell]


def _with_all_tasks(texts: TwiceJudged) -> BoolArray:
    """The rows of personas, of one model each, who have all of the tasks."""
    cells = [texts.cells[n] for n in np.unique(texts.cell).tolist()]
    tasks = {cell.task for cell in cells}
    of_persona: dict[tuple[str, str], set[str]] = {}
    for cell in cells:
        of_persona.setdefault((cell.model, cell.persona), set()).add(cell.task)
    whole = np.array([of_persona.get((cell.model, cell.persona)) == tasks for cell in texts.cells])
    return np.asarray(whole[texts.cell], dtype=np.bool_)


class _Parts(NamedTuple):
    """What single texts, or pairs of runs, add to a total.

    Attributes:
        draw: Shape (m,): the number of what was drawn with it.
        cell: Shape (m,): its cell.
        weight: Shape (m,): its share of the total.
        whole: Shape (m,): what the total is taken over by the old judge.
        old: Shape (m,): the old judge's figure.
        new: Shape (m,): the new one's, NaN without one.
        stands_for: Shape (m,): how many such there are for each that could be drawn.
    """

    draw: IntArray
    cell: IntArray
    weight: FloatArray
    whole: FloatArray
    old: FloatArray
    new: FloatArray
    stands_for: FloatArray

    def where(self, kept: BoolArray) -> "_Parts":
        """Some of them."""
        numbers = [column[kept] for column in self[:2]]
        return _Parts(numbers[0], numbers[1], *(column[kept] for column in self[2:]))


class _Metric:
    """A metric of texts by both judges.

    Args:
        name: The metric.
        texts: The texts.
        bounds: Its range.
        drawn: What was drawn.
    """

    def __init__(
        self, name: MetricName, texts: TwiceJudged, bounds: tuple[float, float], drawn: Drawn
    ) -> None:
        self.name = name
        self.bounds = bounds
        self._texts = texts
        self._drawn = drawn
        if name == "rc_atom":
            self._texts = _whole_cells(texts) if texts.anchor.all() else texts
            self._pairs = _pairs(self._texts)
        else:
            of_text = "mean" if name == "persona_score" else name
            self._old, self._new = (texts.figures(of_text, each) for each in (texts.old, texts.new))

    def figure(self, group: dict[str, str], kept: BoolArray, within: float) -> BridgedFigure:
        """The total of some of the rows."""
        rows = self._of_pairs(kept) if self.name == "rc_atom" else self._of_texts(kept)
        if not len(rows.weight):
            none = Metric.missing(NO_OLD)
            return self._told(group, none, none, none)
        old = Metric.of(float(rows.weight @ rows.whole), int(rows.texts.sum()))
        anchors = int(rows.anchors.sum())
        found = rows.estimate() if anchors else None
        if found is None:
            none = Metric.missing(NO_ANCHOR)
            return self._told(group, old, none, none, anchors)
        whole = bool(self._texts.anchor[kept].all())
        if whole and self.name != "rc_atom":  # an estimate lets the old judge say which texts count
            found = replace(found, value=self._of_new(kept))
        return self._judged(group, old, found, rows, self._interval(found, whole=whole), within)

    def _interval(self, found: Calibrated, *, whole: bool) -> Interval:
        if whole:  # however few: all of them are known
            return Interval.around(found.value, found.value, found.value, self.bounds)
        interval = found.interval_of_few(self.bounds)
        if interval.ends is None:
            many = f"{found.labels} {self._drawn}"
            return Interval.missing(f"too_few_anchors: {many}; an interval needs {FEWEST_LABELS}")
        return interval

    def _judged(
        self,
        group: dict[str, str],
        old: Metric,
        found: Calibrated,
        rows: "_Rows",
        interval: Interval,
        within: float,
    ) -> BridgedFigure:
        (low, high), change, anchors = self.bounds, found.value - found.judged, int(rows.anchors.sum())
        moved, finding, needed = interval, None, None
        if interval.ends is not None:
            least, most = (end - found.judged for end in interval.ends)
            moved = Interval.around(change, least, most, (low - high, high - low))
            margin = within * (high - low)
            finding = _finding((least, most), margin)
            if finding == "undecided":
                draws = self._draws_needed(found, len(rows.weight), margin)
                needed = min(round(draws * anchors / found.labels), int(rows.texts.sum()))
        bridged = Metric.of(found.value, anchors).within(interval)
        effect = Metric.of(change, anchors).within(moved)
        return self._told(group, old, bridged, effect, anchors, finding, needed)

    def _draws_needed(self, found: Calibrated, most: int, margin: float) -> int:
        """About how many draws would decide what these leave open, were the others like them: more than there are, at most all."""

        def decides(draws: int) -> bool:
            low, high = self._interval(found.with_labels(draws), whole=False).ends or self.bounds
            return _finding((low - found.judged, high - found.judged), margin) != "undecided"

        return found.labels + 1 + bisect_left(range(found.labels + 1, most), True, key=decides)

    def _told(
        self,
        group: dict[str, str],
        old: Metric,
        bridged: Metric,
        effect: Metric,
        anchors: int = 0,
        finding: Finding | None = None,
        needed: int | None = None,
    ) -> BridgedFigure:
        return BridgedFigure(
            group=group,
            metric=self.name,
            old=old,
            bridged=bridged,
            effect=effect,
            anchors=anchors,
            finding=finding,
            anchors_needed=needed,
        )

    def _of_texts(self, kept: BoolArray) -> "_Rows":
        """Each text counts as it does in the mean over runs, then cells; of grades over questions, then cells."""
        kept = kept & ~np.isnan(self._old)
        own, old = self._texts.where(kept), self._old[kept]
        weight = self._weights(own)
        return _rows(own, _Parts(own.draw, own.cell, weight, old, old, self._new[kept], np.ones(len(old))))

    def _of_new(self, kept: BoolArray) -> float:
        """The new judge's own total of some of the rows, all of which it was given."""
        kept = kept & ~np.isnan(self._new)
        return float(self._weights(self._texts.where(kept)) @ self._new[kept])

    def _weights(self, own: TwiceJudged) -> FloatArray:
        group = own.item if self.name == "persona_score" else own.run
        first, place = distinct(np.column_stack([own.cell, group]))
        of_cell, of_group = np.bincount(own.cell[first]), np.bincount(place)
        cells = max(1, int(np.count_nonzero(of_cell)))
        return np.asarray(1.0 / cells / of_cell[own.cell] / of_group[place])

    def _of_pairs(self, kept: BoolArray) -> "_Rows":
        """What was drawn of each cell; where all texts are anchors, its runs together."""
        own = self._texts.where(kept)
        parts = self._pairs.where(np.isin(self._pairs.cell, own.cell))
        if own.anchor.all() and not self._texts.anchor.all():
            own = _whole_cells(own)
            parts = _pairs(own)
        cells = max(1, len(np.unique(parts.cell)))
        return _rows(own, parts._replace(weight=parts.weight / cells))


def _whole_cells(texts: TwiceJudged) -> TwiceJudged:
    """As if all runs of a cell had been drawn at once."""
    return replace(texts, draw=_numbers([cell[:3] for cell in texts.cells])[texts.cell])


def _pairs(texts: TwiceJudged) -> _Parts:
    """What was drawn of each cell that has RC_atom, weighted by its share of the cell."""
    found = [
        part
        for cell, place in texts.by_cell()
        if not np.isnan(value := consistency(cell, texts.run[place], texts.old[place]))
        for part in _pairs_of(cell, texts.where(place), value)
    ]
    draw, number, *others = np.array(found, dtype=np.float64).reshape(len(found), 7).T
    return _Parts(draw.astype(np.int64), number.astype(np.int64), *others)


def _pairs_of(cell: JudgedCell, own: TwiceJudged, value: float) -> Iterator[tuple[float, ...]]:
    """The columns of :class:`_Parts` for each pair of a cell's runs, with its share of the cell's RC_atom, which is ``value``."""
    runs = len(np.unique(own.run))
    draws = np.unique(own.draw).tolist()
    for draw in draws:
        pair = own.where(own.draw == draw)
        share = len(np.unique(pair.run)) / runs
        old = new = np.nan
        if pair.anchor.any():
            old, new = (consistency(cell, pair.run, each) for each in (pair.old, pair.new))
        stands_for = max(1.0, runs * (runs - 1) / 2 / len(draws))
        yield draw, own.cell[0], share, value, value if np.isnan(old) else old, new, stands_for


class _Rows(NamedTuple):
    """What a total is estimated from, a row for each thing that could be drawn.

    Attributes:
        stratum: Shape (d,): the number of its model, level, task and dimension, of one of its dimensions. A level's follow each
            other: a judge that differs moves levels apart, so that a level's tasks are the ones to be put together.
        weight: Shape (d,): its share of the total.
        whole: Shape (d,): as in :class:`_Parts`, and likewise the following, all dimensions together.
        old: Shape (d,).
        new: Shape (d,).
        stands_for: Shape (d,).
        texts: Shape (d,): how many texts it has.
        anchors: Shape (d,): how many of these are anchors.
    """

    stratum: IntArray
    weight: FloatArray
    whole: FloatArray
    old: FloatArray
    new: FloatArray
    stands_for: FloatArray
    texts: FloatArray
    anchors: FloatArray

    def estimate(self) -> Calibrated | None:
        """The total by the new judge; ``None`` where it gave no anchor the figure."""
        drawn = self.anchors > 0
        return calibrated(
            Population(self.stratum, self.stands_for, self.weight / self.stands_for, self.whole),
            Sample(
                strata=self.stratum[drawn],
                stands_for=np.full(int(drawn.sum()), len(drawn) / drawn.sum()),
                weights=self.weight[drawn],
                predicted=self.old[drawn],
                said=self.new[drawn],
            ),
        )


def _rows(own: TwiceJudged, parts: _Parts) -> _Rows:
    """The parts by what was drawn: several texts, or several dimensions of a text, are one draw."""
    draws, first, place = np.unique(parts.draw, return_index=True, return_inverse=True)
    if not len(draws):
        return _Rows(draws, *(np.empty(0) for _ in _Rows._fields[1:]))
    known = np.isin(own.draw, draws)
    _, of_text = np.unique(own.text[known], return_index=True)
    of_draw = np.searchsorted(draws, own.draw[known][of_text])
    weight = _sums(place, parts.weight)
    said = np.where(np.isnan(parts.new), 0.0, parts.weight)
    with np.errstate(invalid="ignore"):  # NaN is what a draw without any has
        new = _sums(place, said * np.nan_to_num(parts.new)) / _sums(place, said)
    return _Rows(
        stratum=_numbers([(c.model, c.level, c.task, c.dimension) for c in own.cells])[parts.cell[first]],
        weight=weight,
        whole=_sums(place, parts.weight * parts.whole) / weight,
        old=_sums(place, parts.weight * parts.old) / weight,
        new=new,
        stands_for=parts.stands_for[first],
        texts=np.bincount(of_draw).astype(np.float64),
        anchors=_sums(of_draw, own.anchor[known][of_text]),
    )


def _sums(place: IntArray, values: FloatArray | BoolArray) -> FloatArray:
    return np.bincount(place, weights=values).astype(np.float64)


def _numbers(keys: Sequence[Hashable]) -> IntArray:
    """The number of each key; those that are alike are near in the keys' order."""
    numbers = {key: n for n, key in enumerate(sorted(set(keys), key=str))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def _finding(effect: tuple[float, float], margin: float) -> Finding:
    """Two one-sided tests (Schuirmann, 1987) at 2.5 % each: the interval lies within the margin; or wholly beyond it."""
    low, high = effect
    if -margin <= low and high <= margin:
        return "interchangeable"
    return "different" if low > margin or high < -margin else "undecided"
