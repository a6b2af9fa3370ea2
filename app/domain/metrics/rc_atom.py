"""RC_atom: atomic-level retest consistency, whole and in its two parts."""

from typing import NamedTuple

import numpy as np

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.metrics.scores import UNKNOWN_INSTRUCTION, CellScores


class RetestConsistency(NamedTuple):
    """RC_atom over three sets of pairs of runs; each n counts pairs.

    Attributes:
        overall: All pairs: the paper's RC_atom.
        within_instruction: Pairs that share the persona instruction.
        across_instructions: Pairs that differ in it. Runs whose instruction is unknown are in neither part.
    """

    overall: Metric
    within_instruction: Metric
    across_instructions: Metric


def rc_atom(scores: CellScores) -> RetestConsistency:
    """RC_atom = 2 · (1 − d / (max − min)) − 1, d the mean Wasserstein-1 distance over all pairs of runs.

    Atomic paper, section 3, and section A.1 for merging all scored units of a run into one distribution. The two
    parts are not in the paper.

    Returns:
        Each of the three −1–1; n = pairs of runs that both have a scored unit.
    """
    cdfs, instructions, _ = distributions(scores)
    known = instructions != UNKNOWN_INSTRUCTION
    groups = [cdfs[instructions == instruction] for instruction in np.unique(instructions[known])]
    within = sum(_distance_sum(group) for group in groups)
    within_pairs = sum(_pairs(len(group)) for group in groups)
    across = max(0.0, _distance_sum(cdfs[known]) - within)
    across_pairs = _pairs(int(known.sum())) - within_pairs
    width = scores.scale.width
    unknown = "" if known.all() else f"; the instruction of {int((~known).sum())} runs is unknown"
    return RetestConsistency(
        overall=_normalized(
            _distance_sum(cdfs),
            _pairs(len(cdfs)),
            width,
            f"fewer_than_two_runs: {len(cdfs)} of the runs have a scored unit; RC_atom compares runs",
        ),
        within_instruction=_normalized(
            within, within_pairs, width, f"no_pair_within: no two scored runs share an instruction{unknown}"
        ),
        across_instructions=_normalized(
            across,
            across_pairs,
            width,
            f"no_pair_across: no two scored runs differ in their instruction{unknown}",
        ),
    )


def distributions(scores: CellScores) -> tuple[FloatArray, IntArray, IntArray]:
    """The scored runs' distributions.

    Returns:
        Cumulative score distributions, shape (k, ``size - 1``); persona instructions, shape (k,); positions among
        the sorted runs, shape (k,).
    """
    counts = scores.run_histograms.sum(axis=1)
    used = counts > 0
    # The last value of every cumulative distribution is 1 and tells nothing.
    cdfs = scores.run_histograms[used].cumsum(axis=1)[:, :-1] / counts[used, np.newaxis]
    return cdfs, scores.run_instructions[used], np.flatnonzero(used)


def run_distances(cdfs: FloatArray) -> FloatArray:
    """Shape (k, k): the Wasserstein-1 distance of every two rows of cumulative distributions, 0 to the scale's width."""
    distances = np.zeros((len(cdfs), len(cdfs)))
    for column in cdfs.T:
        distances += np.abs(column[:, None] - column)
    return distances


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _distance_sum(cdfs: FloatArray) -> float:
    """Sum over all pairs of rows of Σ |CDFᵢ − CDFⱼ|, the Wasserstein-1 distance on a grid of step 1.

    For each column, |a − b| summed over pairs is Σ k (n − k) (gap between the k-th and the next sorted value):
    n log n instead of n², and exactly 0 for equal rows.
    """
    gaps = np.diff(np.sort(cdfs, axis=0), axis=0)
    below = np.arange(1, len(gaps) + 1)
    return float((below * below[::-1] @ gaps).sum())


def _normalized(distances: float, pairs: int, width: int, reason: str) -> Metric:
    if pairs == 0:
        return Metric.missing(reason)
    distance = min(distances / pairs, float(width))  # rounding must not carry it past the greatest distance
    return Metric.of((1.0 - distance / width) * 2.0 - 1.0, pairs)


RC_ATOM = MetricDefinition(
    name="rc_atom",
    label="RC_atom",
    summary="consistent between runs",
    definition="Retest consistency: how similar the score distributions of two runs are (Wasserstein distance), averaged"
    " over all pairs of runs.",
    source="Atomic paper, section 3",
    family=Family.ATOMIC,
    estimate=Estimate.DISTANCES,
    compute=rc_atom,
    range=(-1.0, 1.0),
    n=("pair of runs", "pairs of runs"),
    parts=("within_instruction", "across_instructions"),
)
