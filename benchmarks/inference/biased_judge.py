"""A judge who is a point too high in 25 % of sentences and too low in 8 %, with labels: how often intervals hold the truth.

``python -m benchmarks.inference.biased_judge [repetitions]``. The truth is what people would say of every sentence of these
texts; the labels are drawn by the product's own rounds, and the figures are the product's own.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.labels.annotation import Place
from app.domain.labels.calibration import (
    METRICS,
    Calibration,
    JudgedCell,
    JudgedSentences,
    LabelledSentence,
    MetricName,
)
from app.domain.labels.rounds import Candidate, Stratum, draw_sentences, draw_where_labels_help
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.statistics.prediction_powered import Population, Sample, calibrated

SCALE = Scale()
LEVELS = ("low", "neutral", "high")
TASKS = ("essay", "post", "questionnaire")
ONE_UP, ONE_DOWN = 0.25, 0.08
PERSONAS, RUNS = 5, 5
FIVE_OF_EACH = tuple(level for level in LEVELS for _ in range(PERSONAS))
SENTENCES = (4, 25)
LABELS = (60, 100, 200, 400)
RANGES: dict[MetricName, tuple[float, float]] = {
    "mean": (1.0, 5.0),
    "acc_atom": (0.0, 1.0),
    "acc_atom_corrected": (-19 / 36, 1.0),
}


@dataclass(frozen=True, slots=True)
class Coverage:
    """What came of many draws of labels from the same texts.

    Attributes:
        metric: Which.
        labels: How many were drawn each time.
        judge_bias: The judge's figure less the truth.
        bias: The mean estimate less the truth.
        covered: The share of intervals that hold the truth; ``None`` where there was none.
        width: The intervals' mean width.
        covered_in_two: The share of intervals that hold the truth if half of the labels are divided by the other half.
        width_in_two: Their mean width.
        width_of_labels: That of as many labels of sentences drawn evenly, without the judge.
    """

    metric: MetricName
    labels: int
    judge_bias: float
    bias: float
    covered: float | None
    width: float | None
    covered_in_two: float
    width_in_two: float
    width_of_labels: float


def concentration(level: str) -> FloatArray:
    """Of the Dirichlet distribution that a cell's sentences by score are from."""
    return np.asarray(0.6 + 2 * (np.abs(np.arange(5) - 2 * LEVELS.index(level)) < 2))


class Texts:
    """A model's sentences as people and as the judge score them."""

    def __init__(
        self,
        seed: int | Sequence[int],
        *,
        biased: bool = True,
        levels: Sequence[str] = FIVE_OF_EACH,
        runs: int = RUNS,
    ) -> None:
        draws = np.random.default_rng(seed)
        self.cells = [
            JudgedCell("model", f"{level}-{n}", task, level)
            for n, level in enumerate(levels)
            for task in TASKS
        ]
        rows = []
        self.shares: list[FloatArray] = []
        for cell, each in enumerate(self.cells):
            shares = draws.dirichlet(concentration(each.level))
            self.shares.append(shares)
            for run in range(runs):
                count = int(draws.integers(*SENTENCES))
                rows.append((np.full(count, cell), np.full(count, run), draws.choice(5, count, p=shares) + 1))
        self.cell, self.run, self.people = (np.concatenate(column) for column in zip(*rows, strict=True))
        self.judge = judged(self.people, draws) if biased else self.people

    def sentences(self, people: IntArray | None = None) -> list[JudgedSentences]:
        """The sentences by what the judge, or somebody else, gave them."""
        scores = self.judge if people is None else people
        counts = Counter(zip(self.cell.tolist(), self.run.tolist(), scores.tolist(), strict=True))
        return [
            JudgedSentences(cell, run, 0, ((0, score),), n)
            for (cell, run, score), n in sorted(counts.items())
        ]

    def labelled(self, size: int, draws: np.random.Generator) -> list[LabelledSentence]:
        """Labels of a round of this size."""
        return [
            self._label(place.cell) for (place,) in draw_sentences(self._strata(size, draws), size).things
        ]

    def labelled_in_two(
        self, size: int, judged: list[JudgedSentences], draws: np.random.Generator
    ) -> list[LabelledSentence]:
        """Labels of a round of half this size, and of one that is divided by them."""
        strata = self._strata(size, draws)
        first = [place for (place,) in draw_sentences(strata, size // 2).things]
        labels = [self._label(place.cell) for place in first]
        pilot = Calibration(self.cells, SCALE, judged, labels).pilot()
        drawn = {place: (self._task(place.cell), int(self.judge[place.cell])) for place in first}
        second = draw_where_labels_help(strata, size - len(first), pilot.spreads, drawn)
        return labels + [self._label(place.cell) for (place,) in second.things]

    def _task(self, n: int) -> str:
        return self.cells[int(self.cell[n])].task

    def _strata(self, size: int, draws: np.random.Generator) -> list[Stratum]:
        by_stratum: dict[tuple[str, int], list[int]] = defaultdict(list)
        for n in draws.permutation(len(self.cell)).tolist():
            by_stratum[self._task(n), int(self.judge[n])].append(n)
        return [
            Stratum(task, score, len(found), [Candidate(Place(n, 0, 0, 0), "") for n in found[:size]])
            for (task, score), found in sorted(by_stratum.items())
        ]

    def _label(self, n: int) -> LabelledSentence:
        scores = ((0, int(self.judge[n])),)
        return LabelledSentence(int(self.cell[n]), int(self.run[n]), 0, scores, (int(self.people[n]),))


def judged(people: IntArray, draws: np.random.Generator) -> IntArray:
    """The biased judge's scores of sentences of which people say this."""
    chance = draws.random(len(people))
    shift = np.where(chance < ONE_UP, 1, np.where(chance < ONE_UP + ONE_DOWN, -1, 0))
    return np.clip(people + shift, SCALE.minimum, SCALE.maximum)


def labels_alone(said: Population, size: int, draws: np.random.Generator) -> tuple[Population, Sample]:
    """Sentences drawn evenly and labelled, of which no judge says anything.

    Args:
        said: What people say of all sentences.
        size: How many are drawn.
        draws: Chance.
    """
    rows = np.repeat(np.arange(len(said.counts)), said.counts.astype(np.int64))
    drawn = draws.choice(rows, size, replace=False)
    nothing, strata = np.zeros(len(said.counts)), np.zeros(len(said.counts), dtype=np.int64)
    return replace(said, strata=strata, predicted=nothing), Sample(
        strata=strata[drawn],
        stands_for=np.full(size, len(rows) / size),
        weights=said.weights[drawn],
        predicted=nothing[drawn],
        said=said.predicted[drawn],
    )


def coverage(
    metric: MetricName, labels: int, repetitions: int, seed: int = 0, *, biased: bool = True
) -> Coverage:
    """How often the interval of a model's total holds what people would say of all its texts."""
    texts = Texts(seed, biased=biased)
    everything = np.arange(len(texts.cells))
    of_people = Calibration(texts.cells, SCALE, texts.sentences(texts.people), ())
    truth = of_people.sentences_of(metric, everything)[0].judged
    rows, draws = texts.sentences(), np.random.default_rng([seed, labels])
    values, ends, ends_in_two, widths_of_labels, judge = [], [], [], [], 0.0
    for _ in range(repetitions):
        drawn = Calibration(texts.cells, SCALE, rows, texts.labelled(labels, draws))
        found = calibrated(*drawn.sentences_of(metric, everything))
        alone = calibrated(*labels_alone(of_people.sentences_of(metric, everything)[0], labels, draws))
        if found is None or alone is None:
            continue
        judge = found.judged
        values.append(found.value)
        widths_of_labels.append(2 * alone.half_width)
        interval = found.interval(RANGES[metric]).ends
        if interval is not None:
            ends.append(interval)
        in_two = calibrated(
            *Calibration(texts.cells, SCALE, rows, texts.labelled_in_two(labels, rows, draws)).sentences_of(
                metric, everything
            )
        )
        if in_two is not None:
            ends_in_two.append(in_two.interval(RANGES[metric]).ends or RANGES[metric])
    lows, highs = np.array(ends).reshape(-1, 2).T
    return Coverage(
        metric=metric,
        labels=labels,
        judge_bias=judge - truth,
        bias=float(np.mean(values)) - truth,
        covered=float(((lows <= truth) & (truth <= highs)).mean()) if len(lows) else None,
        width=float((highs - lows).mean()) if len(lows) else None,
        covered_in_two=float(np.mean([low <= truth <= high for low, high in ends_in_two])),
        width_in_two=float(np.mean([high - low for low, high in ends_in_two])),
        width_of_labels=float(np.mean(widths_of_labels)),
    )


def main() -> None:
    """Prints the table."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(
        "| metric | labels | judge's bias | bias | coverage, % | width | in two rounds: coverage, % | width | labels alone |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for metric in METRICS:
        for labels in LABELS:
            row = coverage(metric, labels, repetitions)
            covered = (
                "–"
                if row.covered is None or row.width is None
                else f"{100 * row.covered:.1f} | {row.width:.3f}"
            )
            print(
                f"| {metric} | {labels} | {row.judge_bias:+.3f} | {row.bias:+.4f} | {covered} | {100 * row.covered_in_two:.1f}"
                f" | {row.width_in_two:.3f} | {row.width_of_labels:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
