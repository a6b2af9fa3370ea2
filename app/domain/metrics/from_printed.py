"""Corrected metrics of cells of which no more is known than a paper prints: means, consistency, numbers of sentences."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import FloatArray
from app.domain.metrics.rc_atom_corrected import excess

_STEPS, _ENOUGH = 50, 1e-9
_INSIDE = 0.02
"""How far from the ends of what is possible a mean and a variance are taken, as they are rounded."""


class PrintedCell(NamedTuple):
    """What is known of a cell.

    Attributes:
        mean: MEAN.
        rc: RC.
        ic_atom: IC_atom.
        rc_atom: RC_atom.
        sentences: Scored sentences of a response, on average; above 1.
        sentences_of_run: Of a run.
    """

    mean: float
    rc: float
    ic_atom: float
    rc_atom: float
    sentences: float
    sentences_of_run: float


def estimate_corrected(cells: Sequence[PrintedCell], runs: int, scale: Scale) -> list[dict[str, float]]:
    """``ic_atom_corrected``, ``rc_atom_corrected`` and its ceiling for each cell, estimated.

    Responses' standard deviations are taken to be as much too small as those of normal samples of the mean size. The chance
    distance is that of scores with the cell's mean and its variance, within responses and between runs, and the greatest entropy.

    Args:
        cells: What is known of them.
        runs: Runs of each.
        scale: Their scale.
    """
    within = np.array([_spread(cell.ic_atom, scale) / _share_seen(cell.sentences) for cell in cells])
    of_runs = np.array([_spread(cell.rc, scale) ** 2 * runs / (runs - 1) for cell in cells])
    sizes = np.array([cell.sentences_of_run for cell in cells])
    variances = within**2 + np.maximum(0, of_runs - within**2 / sizes)
    shares = _shares(np.array([cell.mean for cell in cells]), variances, scale)
    below = shares.cumsum(axis=1)[:, :-1]
    pool = sizes * runs
    chance = np.sqrt(4 / np.pi * (below * (1 - below)) * (pool / (pool - 1) / sizes)[:, None]).sum(axis=1)
    return [
        {
            "ic_atom_corrected": 1 - 2 * float(sd) / scale.width,
            "rc_atom_corrected": 1 - 2 * excess(_spread(cell.rc_atom, scale), float(by_chance)) / scale.width,
            "rc_atom_corrected_ceiling": 1 - 2 * float(by_chance) / scale.width,
        }
        for cell, sd, by_chance in zip(cells, within, chance, strict=True)
    ]


def _spread(consistency: float, scale: Scale) -> float:
    return (1 - consistency) / 2 * scale.width


def _share_seen(size: float) -> float:
    """Mean standard deviation (denominator n) of normal samples, as a share of the true one."""
    return math.sqrt(2 / size) * math.exp(math.lgamma(size / 2) - math.lgamma((size - 1) / 2))


def _shares(means: FloatArray, variances: FloatArray, scale: Scale) -> FloatArray:
    """The distributions of scores that have these means and variances and the greatest entropy, one a row.

    They are exp(ax + bx²) up to a factor; a and b by Newton's method. What no scores can have is moved inside.
    """
    scores = np.arange(scale.minimum, scale.maximum + 1) - (scale.minimum + scale.maximum) / 2
    mean = (
        np.clip(means, scale.minimum + _INSIDE, scale.maximum - _INSIDE) - (scale.minimum + scale.maximum) / 2
    )
    part = (mean - scores[0]) % 1
    least, most = part * (1 - part), (mean - scores[0]) * (scores[-1] - mean)
    room = most - least
    variance = np.clip(variances, least + _INSIDE * room, most - _INSIDE * room)
    powers = np.stack([scores, scores**2])
    wanted = np.stack([mean, variance + mean**2], axis=1)
    factors = np.zeros_like(wanted)
    for _ in range(_STEPS):
        exponents = factors @ powers
        shares = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        found = shares @ powers.T
        if np.abs(found - wanted).max() < _ENOUGH:
            break
        slopes = np.einsum("cs,is,js->cij", shares, powers, powers) - found[:, :, None] * found[:, None, :]
        steps = np.linalg.solve(slopes + 1e-12 * np.eye(2), (found - wanted)[:, :, None])[:, :, 0]
        factors -= np.clip(steps, -1, 1)
    return np.asarray(shares)
