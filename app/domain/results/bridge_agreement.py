"""How far two judges agree on the same sentences and answers."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import NOT_APPLICABLE, UNPARSED, Verdict, VerdictStatus
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.personagym.task import GRADE_SCALE
from app.domain.results.bridge import BridgeAgreement, BridgeGradeAgreement
from app.domain.results.paired_verdicts import MOST_CLUSTERS, Pair, PairedVerdicts
from app.domain.results.twice_judged import distinct
from app.domain.statistics.resampling import cluster_weights

NOTHING_TO_SCORE, UNREADABLE = 100_000, 100_001
"""What stands for a verdict without a score, far beyond all scales: that there is nothing to score, and any other."""


class Judged(NamedTuple):
    """What sentences are judged on.

    Attributes:
        dimension: The dimension's id.
        level: The persona's level on it.
        scale: Its scale.
    """

    dimension: str
    level: str
    scale: Scale


def agreements(kinds: Sequence[Judged], said: IntArray, seed: int) -> list[BridgeAgreement]:
    """How far two judges agree on sentences, over all dimensions and by dimension.

    Args:
        kinds: What the sentences are judged on.
        said: Shape (n, 5): index among ``kinds``, the response's number, what the new and what the old judge said, and of how many
            sentences.
        seed: Of the resamples.
    """
    readable = said[said[:, 2] != UNREADABLE]
    weights = _weights(readable, seed)
    found = []
    for key in sorted({key for kind in kinds for key in _keys(kind)}):
        of_key = [n for n, kind in enumerate(kinds) if key in _keys(kind)]
        own = np.isin(said[:, 0], of_key)
        if own.any():
            group = _paired(kinds, readable[np.isin(readable[:, 0], of_key)])
            found.append(_agreement(key, group, int(said[own, 4].sum()), weights))
    return found


def graded_agreement(said: IntArray, seed: int) -> BridgeGradeAgreement | None:
    """How far two judges agree on whole answers; ``None`` without any.

    Args:
        said: Shape (n, 2): the new and the old judge's grade of each answer that both judged.
        seed: Of the resamples.
    """
    if not len(said):
        return None
    rows = np.column_stack(
        [np.zeros(len(said), dtype=np.int64), np.arange(len(said)), said, np.ones(len(said), dtype=np.int64)]
    )
    readable = rows[rows[:, 2] != UNREADABLE]
    group = _paired([Judged("", GRADE_SCALE.levels[0], GRADE_SCALE)], readable)
    found = group.figures(GRADE_SCALE.width, _weights(readable, seed))
    return BridgeGradeAgreement(
        responses=len(said),
        left_out=len(said) - found.sentences,
        exact_agreement=found.exact_agreement,
        mean_absolute_difference=found.mean_absolute_difference,
        shift=found.mean_difference,
        quadratic_kappa=found.quadratic_kappa,
    )


def _keys(kind: Judged) -> list[tuple[str, int, int]]:
    return [(dimension, kind.scale.minimum, kind.scale.maximum) for dimension in ("", kind.dimension)]


def _weights(said: IntArray, seed: int) -> FloatArray:
    """How often each response is drawn in each resample."""
    clusters = min(int(said[:, 1].max(initial=0)) + 1, MOST_CLUSTERS)
    return cluster_weights(seed, ("bridge",), clusters)


def _paired(kinds: Sequence[Judged], said: IntArray) -> PairedVerdicts:
    """The sentences that are alike together; those of some thousand responses are resampled as if one."""
    alike = said[:, :4].copy()
    alike[:, 1] %= MOST_CLUSTERS
    first, place = distinct(alike)
    rows = alike[first]
    sentences = np.bincount(place, weights=said[:, 4], minlength=len(rows)).astype(np.int64)
    group = PairedVerdicts(Counter(), int(sentences.sum()), len(np.unique(said[:, 1])))
    for (kind, cluster, new, old), n in zip(rows.tolist(), sentences.tolist(), strict=True):
        pair = Pair(kinds[kind].scale, kinds[kind].level, _verdict(new), _verdict(old))
        group.count(pair, cluster, n)
    return group


def _verdict(said: int) -> Verdict:
    if said == NOTHING_TO_SCORE:
        return NOT_APPLICABLE
    return UNPARSED if said == UNREADABLE else Verdict(VerdictStatus.SCORED, said)


def _agreement(
    key: tuple[str, int, int], group: PairedVerdicts, sentences: int, weights: FloatArray
) -> BridgeAgreement:
    dimension, minimum, maximum = key
    found = group.figures(maximum - minimum, weights)
    return BridgeAgreement(
        dimension=dimension or None,
        scale={"minimum": minimum, "maximum": maximum},
        sentences=sentences,
        responses=group.responses,
        left_out=sentences - found.sentences,
        exact_agreement=found.exact_agreement,
        mean_absolute_difference=found.mean_absolute_difference,
        shift=found.mean_difference,
        quadratic_kappa=found.quadratic_kappa,
        acc_old=found.acc_second,
        acc_new=found.acc_first,
        acc_shift=found.acc_difference,
    )
