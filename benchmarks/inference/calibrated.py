"""A biased judge with labels: how often intervals hold what people would say of more than these texts.

``python -m benchmarks.inference.calibrated [repetitions]``. Each repetition draws other personas, texts and labels; a text's
wordings are not known apart, so that there are no intervals over wordings.
"""

import json
import sys
from collections.abc import Sequence

import numpy as np

from app.domain.labels.calibration import Calibration, MetricName
from app.domain.metrics.metric import FloatArray
from app.domain.metrics.scores import RunValues
from app.domain.statistics.cells import shape_of
from app.domain.statistics.design import DesignCell, Population, Stratum, components, error, interval
from app.domain.statistics.variability import Variability, of_mean
from benchmarks.inference.biased_judge import LEVELS, RANGES, SCALE, Texts, concentration
from benchmarks.inference.coverage import PERSONAS, Row, count

LABELS = 200
RUNS = (5, 30)
POPULATIONS = (Population.THESE, Population.PERSONAS)
METRICS: tuple[MetricName, ...] = ("mean", "acc_atom")

Key = tuple[str, str, Population]
"""Whose interval, metric, population."""


def coverage(personas: int, levels: int, runs: int, repetitions: int) -> dict[Key, Row]:
    """Of the judge's own intervals and of the calibrated ones."""
    of_personas = [LEVELS[2 - n % levels] for n in range(personas)]
    rows: dict[Key, Row] = {
        (whose, metric, population): Row()
        for whose in ("judge", "calibrated")
        for metric in METRICS
        for population in POPULATIONS
    }
    for repetition in range(repetitions):
        draws = np.random.default_rng([personas, levels, runs, repetition])
        texts = Texts([personas, levels, runs, repetition], levels=of_personas, runs=runs)
        made = Calibration(texts.cells, SCALE, texts.sentences(), texts.labelled(LABELS, draws))
        everything = range(len(texts.cells))
        for metric in METRICS:
            cells = _judged(texts, metric)
            value = float(np.mean([cell.figure.value for cell in cells]))
            figure, varied = made.figure({}, metric, everything), components(cells)
            for population in POPULATIONS:
                own = interval(value, error(varied, population), RANGES[metric], shape_of(metric))
                true = _truth(texts, metric, population)
                count(rows["judge", metric, population], own, true)
                count(rows["calibrated", metric, population], figure.beyond(own), true)
    return rows


def _value(metric: MetricName, level: str) -> FloatArray:
    """What each score counts for."""
    scores = np.arange(1.0, 6.0)
    if metric == "mean":
        return scores
    return np.array([SCALE.level_index(int(score), 1) == LEVELS.index(level) for score in scores]) * 1.0


def _judged(texts: Texts, metric: MetricName) -> list[DesignCell]:
    found = []
    for n, cell in enumerate(texts.cells):
        own = texts.cell == n
        values, run = _value(metric, cell.level)[texts.judge[own] - 1], texts.run[own]
        means = np.bincount(run, weights=values) / np.bincount(run)
        figure: Variability = of_mean(
            RunValues(means, np.arange(len(means))),
            np.zeros(len(means), dtype=np.int64),
            np.arange(len(means)),
        )
        found.append(DesignCell(cell.persona, Stratum(cell.task, "E", cell.level), figure))
    return found


def _truth(texts: Texts, metric: MetricName, population: Population) -> float:
    """What people would say of more runs of these cells, or of other personas' texts."""
    shares: Sequence[FloatArray] = texts.shares
    if population is Population.PERSONAS:
        alphas = [concentration(cell.level) for cell in texts.cells]
        shares = [alpha / alpha.sum() for alpha in alphas]
    return float(
        np.mean([share @ _value(metric, cell.level) for share, cell in zip(shares, texts.cells, strict=True)])
    )


def main() -> None:
    """Prints one JSON object a line."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    for personas in PERSONAS:
        for levels in (1, 3) if personas > 2 else (1,):
            for runs in RUNS:
                rows = coverage(personas, levels, runs, repetitions)
                line = {
                    f"{whose}, {metric}, {population.value}": round(100 * row.coverage, 1)
                    if row.printed
                    else sorted(row.reasons)
                    for (whose, metric, population), row in rows.items()
                }
                design = {"personas": personas, "levels": levels, "runs": runs}
                print(json.dumps({**design, **line}), flush=True)


if __name__ == "__main__":
    main()
