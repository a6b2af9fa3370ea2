"""How far two series of scores of the same things agree, each thing counting for as many as it stands for."""

from collections.abc import Callable

import numpy as np

from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.agreement import kappa_draws
from app.domain.statistics.krippendorff import alpha
from app.domain.statistics.resampling import percentile_interval

NO_VARIATION = "no_variation: all scores are the same one"
_CORRELATION = (-1.0, 1.0)

Figure = tuple[str, Callable[[FloatArray], FloatArray], tuple[float, float]]
"""Its name; its value for each of some joint tables, shape (m, k, k), NaN where it has none; its range."""


def joint_agreement(
    first: IntArray,
    second: IntArray,
    counts: FloatArray,
    clusters: IntArray,
    weights: FloatArray,
    things: int,
    *,
    nominal: bool = False,
) -> dict[str, Metric]:
    """Exact agreement, and of scores Cohen's κ with quadratic weights and Krippendorff's ordinal α.

    Args:
        first: Shape (n,), n at least 1: one evaluator's scores.
        second: Shape (n,): the other's.
        counts: Shape (n,): how often each pair of scores counts.
        clusters: Shape (n,): which cluster each belongs to, from 0.
        weights: Shape (clusters, b): how often each cluster is drawn in each resample.
        things: How many things the scores are of; a thing may have several pairs of scores.
        nominal: Whether they are categories without an order; then, Cohen's unweighted κ is the only coefficient.
    """
    least = min(first.min(), second.min())
    size = int(max(first.max(), second.max()) - least) + 1
    shape = (len(weights), size, size)
    places = (clusters * size + first - least) * size + second - least
    tables = np.bincount(places, weights=counts, minlength=int(np.prod(shape))).reshape(shape)
    drawn = np.tensordot(weights.T, tables, axes=1)
    # α corrects for the number of scores, of which a resample has more or fewer by chance alone.
    sums = drawn.sum(axis=(1, 2), keepdims=True)
    drawn *= np.divide(tables.sum(), sums, out=np.full_like(sums, np.nan), where=sums > 0)
    found = {}
    for name, of, bounds in _NOMINAL if nominal else _FIGURES:
        value = float(of(tables.sum(axis=0, keepdims=True))[0])
        if np.isnan(value):
            found[name] = Metric.missing(NO_VARIATION)
            continue
        interval = percentile_interval(value, of(drawn), len(weights), bounds, "responses")
        found[name] = Metric.of(value, things).within(interval)
    return found


def _exact(tables: FloatArray) -> FloatArray:
    return np.asarray(np.trace(tables, axis1=1, axis2=2) / tables.sum(axis=(1, 2)))


def _kappa(tables: FloatArray) -> FloatArray:
    first, second = np.indices(tables.shape[1:], dtype=np.float64).reshape(2, -1)
    shares = (tables / tables.sum(axis=(1, 2), keepdims=True)).reshape(len(tables), -1)
    return kappa_draws(first, second, lambda values: shares @ values)


def _unweighted_kappa(tables: FloatArray) -> FloatArray:
    shares = tables / tables.sum(axis=(1, 2), keepdims=True)
    by_chance = (shares.sum(axis=1) * shares.sum(axis=2)).sum(axis=1)
    missing = np.full(len(tables), np.nan)
    above = np.trace(shares, axis1=1, axis2=2) - by_chance
    return np.asarray(np.divide(above, 1 - by_chance, out=missing, where=by_chance < 1 - 10**-9))


def _alpha(tables: FloatArray) -> FloatArray:
    known = ~np.isnan(tables[:, 0, 0])
    found = np.full(len(tables), np.nan)
    found[known] = alpha(tables[known] + tables[known].transpose(0, 2, 1), ordinal=True)
    return found


_FIGURES: tuple[Figure, ...] = (
    ("exact_agreement", _exact, (0.0, 1.0)),
    ("quadratic_kappa", _kappa, _CORRELATION),
    ("alpha_ordinal", _alpha, _CORRELATION),
)
_NOMINAL: tuple[Figure, ...] = (
    ("exact_agreement", _exact, (0.0, 1.0)),
    ("kappa", _unweighted_kappa, _CORRELATION),
)
