"""False alarms and power of comparisons of many models, whose noise is known."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.domain.statistics.design import DesignCell, Stratum
from app.domain.statistics.models import PairOfModels, compare_all
from app.domain.statistics.power import Noise, Size
from app.domain.statistics.variability import Variability
from benchmarks.inference.population import varied_mean


class Found(NamedTuple):
    """Of comparisons, in shares from 0 to 1.

    Attributes:
        false_alarms: Some two equal models said to differ.
        intervals_missed: Some pair's interval without the true difference.
        told_apart: Of pairs of models that differ, those told apart the right way round.
        detectable: The difference that each comparison says it would find; 1 where there is none.
    """

    false_alarms: float
    intervals_missed: float
    told_apart: float
    detectable: Sequence[float]


def cells(
    draws: np.random.Generator, noise: Noise, size: Size, true: Sequence[float], *, wordings: bool = True
) -> dict[str, list[DesignCell]]:
    """Models' cells, with normal effects about true figures.

    Args:
        draws: Of all effects.
        noise: Of two models' differences.
        size: How many of each.
        true: The models' figures.
        wordings: Whether the cells tell how they vary with wordings.
    """
    found = {}
    for n, mean in enumerate(true):
        # Half of a difference's variance is each model's.
        of_persona, of_wording, of_both, of_run = (sd / 2**0.5 for sd in noise[:4])
        columns = of_wording * draws.standard_normal(size.wordings)
        own = []
        for persona in range(size.personas):
            level = mean + of_persona * draws.standard_normal() + columns
            level = level + of_both * draws.standard_normal(size.wordings)
            runs = level[:, None] + of_run * draws.standard_normal((size.wordings, size.iterations))
            figure = varied_mean(runs) if wordings else Variability(float(runs.mean()))
            own.append(DesignCell(f"p{persona}", Stratum("essay", "E", str(persona % size.levels)), figure))
        found[f"m{n}"] = own
    return found


def family(
    draws: np.random.Generator,
    noise: Noise,
    size: Size,
    true: Sequence[Sequence[float]],
    *,
    wordings: bool = True,
) -> Found:
    """What comparisons of models find whose true figures are known: for each comparison, each model's."""
    rows, stated = [], []
    for figures in true:
        values = {f"m{n}": value for n, value in enumerate(figures)}
        found = compare_all(cells(draws, noise, size, figures, wordings=wordings), 1.0)
        equal = [pair for pair in found.pairs if values[pair.a] == values[pair.b]]
        told = [
            pair.better == max(pair.a, pair.b, key=values.__getitem__)
            for pair in found.pairs
            if pair not in equal
        ]
        rows.append(
            (
                any(pair.better for pair in equal),
                any(_misses(pair, values[pair.a] - values[pair.b]) for pair in found.pairs),
                sum(told) / max(1, len(told)),
            )
        )
        stated.append(1.0 if found.detectable is None else found.detectable)
    false_alarms, missed, told_apart = np.mean(rows, axis=0).tolist()
    return Found(false_alarms, missed, told_apart, stated)


def _misses(pair: PairOfModels, true: float) -> bool:
    ends = pair.interval.ends
    return ends is not None and not ends[0] <= true <= ends[1]
