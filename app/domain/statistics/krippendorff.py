"""Krippendorff's α: how far any number of judges agree, where some may have said nothing about some units."""

from itertools import combinations

import numpy as np

from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.resampling import percentile_interval

NO_SCORE = -1
NO_VARIATION = "no_variation: all scores of units with two of them are the same one"


def coincidences(scores: IntArray, counts: IntArray, clusters: IntArray, size: int) -> FloatArray:
    """The coincidence matrix of each cluster of units.

    A unit that m judges scored adds 1 / (m − 1) for each ordered pair of them, m in all; units with one score, nothing.

    Args:
        scores: Shape (n, judges): each unit's scores, from 0 to ``size`` - 1, :data:`NO_SCORE` where there is none.
        counts: Shape (n,): how many units have these scores.
        clusters: Shape (n,): the cluster to which each row belongs, from 0.
        size: How many different scores there can be.

    Returns:
        Shape (clusters, ``size``, ``size``), each symmetric; empty for no unit.
    """
    shape = (int(clusters.max(initial=-1)) + 1, size, size)
    given = (scores != NO_SCORE).sum(axis=1)
    found = np.zeros(np.prod(shape))
    # One number of judges after the other: so all sums are whole numbers, and the same in any order of rows.
    for judges in np.unique(given[given > 1]).tolist():
        rows = np.flatnonzero(given == judges)
        for one, other in combinations(scores[rows].T, 2):
            both = (one != NO_SCORE) & (other != NO_SCORE)
            places = (clusters[rows][both] * size + one[both]) * size + other[both]
            found += np.bincount(places, weights=counts[rows][both], minlength=len(found)) / (judges - 1)
    tables = found.reshape(shape)
    return np.asarray(tables + tables.transpose(0, 2, 1))


def coincidences_of(answers: FloatArray, clusters: IntArray) -> FloatArray:
    """:func:`coincidences` where any number of people answered: shape (clusters, k, k).

    Args:
        answers: Shape (n, k): how many gave each unit each of k scores, in the scores' order.
        clusters: Shape (n,): the cluster to which each unit belongs, from 0.
    """
    given = answers.sum(axis=1)
    answers, clusters, given = answers[given > 1], clusters[given > 1], given[given > 1]
    found = np.zeros((int(clusters.max(initial=-1)) + 1, *[answers.shape[1]] * 2))
    own = answers[:, :, None] * np.eye(answers.shape[1])
    np.add.at(found, clusters, (answers[:, :, None] * answers[:, None] - own) / (given - 1)[:, None, None])
    return found


def alpha_within(tables: FloatArray, weights: FloatArray, units: int, *, ordinal: bool) -> Metric:
    """α of all personas together, with its interval; missing where all scores are the same.

    Args:
        tables: Shape (personas, k, k): each one's coincidences.
        weights: Shape (personas, b): how often each is drawn in each resample.
        units: How many units have two scores or more.
        ordinal: As of :func:`alpha`.
    """
    value = float(alpha(tables.sum(axis=0), ordinal=ordinal))
    if np.isnan(value):
        return Metric.missing(NO_VARIATION)
    resampled = np.einsum("pij,pb->bij", tables, weights)
    # α corrects for the number of scores, of which a resample has more or fewer by chance alone.
    sums = resampled.sum(axis=(1, 2), keepdims=True)
    resampled *= np.divide(tables.sum(), sums, out=np.zeros_like(sums), where=sums > 0)
    draws = alpha(resampled, ordinal=ordinal)
    return Metric.of(value, units).within(
        percentile_interval(value, draws, len(tables), (-1.0, 1.0), "personas")
    )


def alpha(tables: FloatArray, *, ordinal: bool) -> FloatArray:
    """α = 1 − (n − 1) Σ o δ² / Σ nₐ n_b δ², o the coincidences, nₐ their margins and n their sum.

    Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011). δ is the scores' distance; for ordinal ones the number
    of values given between the two, half of those at either end included.

    Args:
        tables: Shape (…, k, k): coincidence matrices.
        ordinal: Whether only the scores' order counts, not their distances.

    Returns:
        Shape (…): 1 is perfect, 0 chance; NaN where fewer than two different scores were given.
    """
    margins = tables.sum(axis=-1)
    places = (
        margins.cumsum(axis=-1) - margins / 2
        if ordinal
        else np.arange(margins.shape[-1], dtype=np.float64) + 0 * margins
    )
    squares = (places[..., :, None] - places[..., None, :]) ** 2
    observed = (tables * squares).sum(axis=(-2, -1))
    expected = (margins[..., :, None] * margins[..., None, :] * squares).sum(axis=(-2, -1))
    quotient = np.divide(observed, expected, out=np.full(expected.shape, np.nan), where=expected > 0)
    return np.asarray(1.0 - (margins.sum(axis=-1) - 1) * quotient)
