"""The resampling behind every interval: Poisson weights of clusters, and percentile intervals from them."""

import hashlib
import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray

RESAMPLES = 1000
"""Resamples behind an interval: its ends then repeat to about a tenth of the standard error under another seed."""

FEWEST_CLUSTERS = 5
"""With fewer, even the range of all values, the widest interval that resampling can give, covers less than 93.75 % =
1 − 2 · (1/2)⁵."""

USABLE_SHARE = 0.5
"""An interval needs at least this share of the resamples to have the statistic; of five runs, a quarter of the resamples hold
fewer than three."""

_ENDS = (0.025, 0.975)
_NORMAL = 1.959963984540054
"""The normal distribution's 97.5 % quantile."""


def cluster_weights(seed: int, key: Sequence[str], clusters: int) -> FloatArray:
    """How often each cluster is drawn in each resample: independent Poisson(1) counts.

    The Poisson bootstrap (Hanley and MacGibbon, 2006; Chamandy et al., 2012): like Efron's, without the constraint
    that a resample has exactly n clusters. So a cluster's weights do not depend on which other clusters there are:
    two judges, or two metrics, that could use different runs are still resampled together.

    Args:
        seed: The job's.
        key: What is resampled, such as model, persona and task. The same key gives the same weights.
        clusters: How many clusters; those of the first do not change when there are more.

    Returns:
        Shape (``clusters``, :data:`RESAMPLES`).
    """
    return chance(seed, key).poisson(1.0, size=(clusters, RESAMPLES)).astype(np.float64)


def chance(seed: int, key: Sequence[str]) -> np.random.Generator:
    """Where chance comes from; the same seed and key give the same."""
    digest = hashlib.sha256("\0".join(key).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32).tolist()
    return np.random.default_rng([seed, *words])


def ratio_draws(sums: FloatArray, counts: FloatArray, weights: FloatArray) -> FloatArray:
    """The ratio Σ sums / Σ counts of each resample; NaN where a resample has nothing.

    Args:
        sums: Shape (k,): a cluster's sum of values.
        counts: Shape (k,): of how many values.
        weights: Shape (k, b).

    Returns:
        Shape (b,).
    """
    below = counts @ weights
    missing = np.full(len(below), np.nan)
    return np.asarray(np.divide(sums @ weights, below, out=missing, where=below > 0))


def percentile_interval(
    value: float, draws: FloatArray, clusters: int, bounds: tuple[float, float], of: str
) -> Interval:
    """The expanded percentile interval (Hesterberg, 2015, section 5.3).

    Quantiles of the resampled values about ``value``, stretched by t(n − 1) / z · √(n / (n − 1)): a resample's spread
    is too small by the last factor, and quantiles of few clusters' means lie as close as the normal distribution's, not as
    Student's. Where all resamples are equal the clusters' spread tells nothing, and :func:`unanimous` stands in.

    Args:
        value: The estimate.
        draws: Shape (b,): the statistic of every resample, NaN where it has none.
        clusters: n, the clusters behind the estimate.
        bounds: The statistic's least and greatest value.
        of: What the clusters are, for the reason.
    """
    if clusters < FEWEST_CLUSTERS:
        return too_few(clusters, of)
    known = draws[~np.isnan(draws)]
    if len(known) < USABLE_SHARE * len(draws):
        return unstable(of)
    if np.ptp(known) < 10**-9:  # rounding apart, all are the same
        return unanimous(value, clusters, bounds)
    low, high = np.quantile(known - value, _ENDS)
    stretch = student(clusters - 1) / _NORMAL * math.sqrt(clusters / (clusters - 1))
    return Interval.around(value, value + stretch * float(low), value + stretch * float(high), bounds)


def unanimous(value: float, clusters: int, bounds: tuple[float, float], alpha: float = 0.05) -> Interval:
    """An interval for a mean of which all n clusters have the same value.

    If a share q of all clusters has this value, n of n have it with probability qⁿ, which is under 5 % for q below
    0.05^(1/n). The remaining 1 − q may have any value within ``bounds``. Holds for every distribution, and for
    n of n successes it is Clopper and Pearson's one-sided bound.

    Args:
        value: The clusters' value.
        clusters: n.
        bounds: The least and the greatest value that there can be.
        alpha: What is not likely, if not 5 %.
    """
    share = likely_share(clusters, alpha)
    least, most = bounds
    return Interval.around(
        value, share * value + (1 - share) * least, share * value + (1 - share) * most, bounds
    )


def likely_share(clusters: int, alpha: float = 0.05) -> float:
    """The smallest share of all clusters for which ``clusters`` of as many having a property is not unlikely (``alpha``)."""
    return float(alpha ** (1 / clusters))


def clusters_that_agree(half_width: float, bounds: tuple[float, float], alpha: float = 0.05) -> int:
    """How many clusters that all have the same value make :func:`unanimous` no wider than ± ``half_width``."""
    disagreeing = 2 * half_width / (bounds[1] - bounds[0])
    return 1 if disagreeing >= 1 else math.ceil(math.log(alpha) / math.log1p(-disagreeing))


@cache
def student(degrees: float, share: float = _ENDS[1]) -> float:
    """A quantile of Student's t distribution, the 97.5 % one unless told otherwise."""
    from scipy import special  # noqa: PLC0415 - its import takes a second, and who only reads results needs none

    return float(special.stdtrit(degrees, share))


def student_tail(t: float, degrees: float) -> float:
    """How often Student's t lies as far from 0 as ``t`` or farther, on either side."""
    from scipy import special  # noqa: PLC0415 - as above

    return float(2 * special.stdtr(degrees, -abs(t)))


def too_few(clusters: int, of: str) -> Interval:
    """No interval, because there are too few clusters."""
    counted = of.removesuffix("s") if clusters == 1 else of
    return Interval.missing(f"too_few_{of}: {clusters} {counted}; an interval needs {FEWEST_CLUSTERS}")


def unstable(of: str) -> Interval:
    """No interval, because too many resamples lack the statistic."""
    return Interval.missing(f"unstable: too few resamples of the {of} have the statistic")
