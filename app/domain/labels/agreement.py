"""How far people agree with a job's judges, and with each other (atomic paper, section 4.3 and Table 3)."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from app.domain.labels.annotation import Annotation, Answer, Kind, Place
from app.domain.labels.human_agreement import (
    AgreementWithJudge,
    HumanAgreement,
    WeightedAgreement,
    WeightedWithJudge,
    WithNotApplicable,
)
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.fleiss import NO_JOINT, fleiss_kappa
from app.domain.statistics.joint_agreement import joint_agreement
from app.domain.statistics.rank import (
    RANGE,
    kendall_tau,
    spearman_rho,
    weighted_kendall_tau,
    weighted_spearman_rho,
)
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws

Judged = Mapping[tuple[str | None, Place], float]
"""One judge's score by dimension and place: a sentence's, a response's grade or the mean of its sentences' scores."""

Subject = tuple[str | None, Place, Place | None]
"""What was looked at: the dimension, the sentence, and a pair's other one."""


Stratum = tuple[str, tuple[int, ...], str]
"""Task and the judges' scores, one or a pair's two; of responses none, but the model."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What labelling rounds drew, and from what.

    Attributes:
        drawn: Each thing's stratum.
        sizes: By kind and dimension, how many things each stratum has, those of which none was drawn included.
    """

    drawn: Mapping[Subject, Stratum] = field(default_factory=dict)
    sizes: Mapping[tuple[Kind, str | None], Mapping[Stratum, int]] = field(default_factory=dict)


NOT_APPLICABLE = -1.0
"""The judge found the sentence not applicable; below every scale, and never part of a mean."""
ALL_SCORED = "all_scored: nobody found one of these sentences not applicable"
NOT_DRAWN = "not_drawn: none of these was drawn in a labelling round, so nothing says what they stand for"
_SIGNS = {Answer.FIRST: 1.0, Answer.SECOND: -1.0, Answer.EQUAL: 0.0}
NO_PAIRS = "no_pairs: no pair has two different scores from this judge"


def annotation_agreement(
    annotations: Sequence[Annotation],
    tasks: Mapping[int, str],
    judges: Mapping[str, Judged],
    seed: int,
    sampling: Sampling,
    declined: Mapping[str, Collection[tuple[str | None, Place]]] = MappingProxyType({}),
) -> list[HumanAgreement]:
    """The agreement by kind and dimension; of PersonaGym's grades by task.

    Args:
        annotations: All of a job, each annotator's once for each thing, pairs in order.
        tasks: The task's id by its cells' ordinals.
        judges: What each judge gave, by label.
        seed: The job's.
        sampling: What labelling rounds drew.
        declined: The sentences that each judge found not applicable, by dimension and place.
    """
    groups: dict[tuple[str, str, str], list[Annotation]] = defaultdict(list)
    for each in annotations:
        rubric = "" if each.dimension is not None else tasks[each.place.cell]
        groups[each.kind.value, each.dimension or "", rubric].append(each)
    return [
        _group(Kind(kind), dimension or None, rubric or None, found, judges, seed, sampling, declined)
        for (kind, dimension, rubric), found in sorted(groups.items())
    ]


def _group(
    kind: Kind,
    dimension: str | None,
    task: str | None,
    found: Sequence[Annotation],
    judges: Mapping[str, Judged],
    seed: int,
    sampling: Sampling,
    declined: Mapping[str, Collection[tuple[str | None, Place]]],
) -> HumanAgreement:
    by_subject: dict[Subject, list[Annotation]] = defaultdict(list)
    for each in sorted(found, key=lambda one: (one.place, one.other or one.place, one.annotator)):
        by_subject[each.subject].append(each)
    answered = list(by_subject.values())
    key = ("annotations", kind.value, dimension or "", task or "")
    compare = _pairs if kind is Kind.PAIRS else _scores
    sizes = {
        stratum: size
        for stratum, size in sampling.sizes.get((kind, dimension), {}).items()
        if task is None or stratum[0] == task
    }
    strata = {subject: sampling.drawn[subject] for subject in by_subject if subject in sampling.drawn}
    subject_weights = _subject_weights(strata, sizes)
    return HumanAgreement(
        kind=kind.value,
        dimension=dimension,
        task=task,
        annotators=len({each.annotator for each in found}),
        n=len(answered),
        answers=len(found),
        not_applicable=sum(
            all(each.answer is Answer.NOT_APPLICABLE for each in answers) for answers in answered
        ),
        fleiss_kappa=fleiss_kappa(answer_counts(answered), cluster_weights(seed, key, len(answered))),
        weighted=WeightedAgreement(
            fleiss_kappa=_weighted_kappa(by_subject, strata, sizes, seed, key),
            population=sum(sizes.values()),
            covered=sum(sizes[stratum] for stratum in set(strata.values())),
        ),
        judges=[
            compare(judge, scores, answered, seed, key, subject_weights).model_copy(
                update={
                    "with_not_applicable": _with_not_applicable(
                        scores, declined.get(judge, ()), answered, seed, key
                    )
                }
                if kind is Kind.SENTENCES
                else {}
            )
            for judge, scores in judges.items()
        ],
    )


def _subject_weights(strata: Mapping[Subject, Stratum], sizes: Mapping[Stratum, int]) -> dict[Subject, float]:
    """For how many things of the population each stands that has an answer and was drawn in a round.

    Of a stratum's things as many as have an answer share all that there are: the weights of a stratified sample
    (Horvitz and Thompson, 1952), also where several rounds drew, or somebody has not finished.
    """
    counts = Counter(strata.values())
    return {subject: sizes[stratum] / counts[stratum] for subject, stratum in strata.items()}


def _weighted_kappa(
    by_subject: Mapping[Subject, Sequence[Annotation]],
    strata: Mapping[Subject, Stratum],
    sizes: Mapping[Stratum, int],
    seed: int,
    key: tuple[str, ...],
) -> Metric:
    """κ needs two answers: so those with two share what there is, not those with one."""
    if not strata:
        return Metric.missing(NOT_DRAWN)
    joint = {subject: stratum for subject, stratum in strata.items() if len(by_subject[subject]) > 1}
    subject_weights = _subject_weights(joint, sizes)
    if not subject_weights:
        return Metric.missing(NO_JOINT)
    weights = cluster_weights(seed, key, len(subject_weights))
    counts = answer_counts([by_subject[subject] for subject in subject_weights])
    return fleiss_kappa(counts, weights, np.array(list(subject_weights.values())))


def answer_counts(answered: Sequence[Sequence[Annotation]]) -> FloatArray:
    """Shape (n, k): how many gave each thing each answer."""
    found = [Counter((each.answer, each.score) for each in answers) for answers in answered]
    kinds = sorted({answer for counts in found for answer in counts}, key=str)
    return np.array([[counts[kind] for kind in kinds] for counts in found], dtype=np.float64)


def _scores(
    judge: str,
    scores: Judged,
    answered: Sequence[Sequence[Annotation]],
    seed: int,
    key: tuple[str, ...],
    subject_weights: Mapping[Subject, float],
) -> AgreementWithJudge:
    compared: list[_Compared] = []
    without = 0
    for answers in answered:
        given = [each.score for each in answers if each.score is not None]
        score = scores.get((answers[0].dimension, answers[0].place))
        without += score is None
        if given and score is not None:
            stands_for = subject_weights.get(answers[0].subject, 0.0)
            compared.append(_Compared(given, score, answers[0].place.response, stands_for))
    series = _series(compared, seed, key)
    whole = compared if answered[0][0].kind is Kind.SENTENCES or answered[0][0].dimension is None else ()
    joint = _joint(whole, [1.0] * len(compared), seed, key)
    return AgreementWithJudge(
        judge=judge,
        kendall_tau=kendall_tau(*series),
        spearman_rho=spearman_rho(*series),
        **joint,
        weighted=_weighted(compared, joint, seed, key),
        left_out={"without_score": without},
    )


def _with_not_applicable(
    scores: Judged,
    declined: Collection[tuple[str | None, Place]],
    answered: Sequence[Sequence[Annotation]],
    seed: int,
    key: tuple[str, ...],
) -> WithNotApplicable | None:
    """Agreement with "not applicable" as a category; ``None`` if the judge has an answer to none of the sentences."""
    compared: list[tuple[Sequence[int], int, Place]] = []
    for answers in answered:
        place = (answers[0].dimension, answers[0].place)
        judged = NOT_APPLICABLE if place in declined else scores.get(place)
        if judged is not None:
            said = [int(NOT_APPLICABLE) if each.score is None else each.score for each in answers]
            compared.append((said, int(judged), answers[0].place))
    if not compared:
        return None
    clusters = _clusters([place.response for *_, place in compared])
    rows = [
        (judged, each, 1 / len(said), cluster)
        for (said, judged, _), cluster in zip(compared, clusters.tolist(), strict=True)
        for each in said
    ]
    judge, people, shares, places = np.array(rows, dtype=np.float64).T
    weights = cluster_weights(seed, key, int(clusters.max()) + 1)
    first, second, of = (each.astype(np.int64) for each in (judge, people, places))
    found = joint_agreement(first, second, shares, of, weights, len(compared), nominal=True)
    not_applicable = people == NOT_APPLICABLE
    sentences = sum(int(NOT_APPLICABLE) in said for said, *_ in compared)
    scored = Metric.missing(ALL_SCORED)
    if sentences:
        share = shares[not_applicable & (judge != NOT_APPLICABLE)].sum() / shares[not_applicable].sum()
        scored = Metric.of(float(share), sentences)
    return WithNotApplicable(**found, judge_scored=scored)


def _weighted(
    compared: "Sequence[_Compared]", joint: Mapping[str, Metric], seed: int, key: tuple[str, ...]
) -> WeightedWithJudge:
    """The same figures of what labelling rounds drew from."""
    known = [each for each in compared if each.stands_for]
    if not known:
        nothing = Metric.missing(NOT_DRAWN)
        none = dict.fromkeys(joint, nothing)
        return WeightedWithJudge(kendall_tau=nothing, spearman_rho=nothing, **none)
    stands = np.array([each.stands_for for each in known])
    series = _series(known, seed, key)
    return WeightedWithJudge(
        kendall_tau=weighted_kendall_tau(*series, stands),
        spearman_rho=weighted_spearman_rho(*series, stands),
        **(_joint(known, stands.tolist(), seed, key) if joint else {}),
    )


class _Compared(NamedTuple):
    """A thing with a score from annotators and from the judge."""

    people: Sequence[int]
    judged: float
    response: tuple[int, int, int]
    stands_for: float


def _joint(
    compared: Sequence[_Compared], counts: Sequence[float], seed: int, key: tuple[str, ...]
) -> dict[str, Metric]:
    """The judge's score against each answer."""
    if not compared:
        return {}
    clusters = _clusters([each.response for each in compared])
    rows = [
        (int(each.judged), said, count / len(each.people), cluster)
        for each, count, cluster in zip(compared, counts, clusters, strict=True)
        for said in each.people
    ]
    judged, people, shares, places = np.array(rows, dtype=np.float64).T
    weights = cluster_weights(seed, key, int(clusters.max()) + 1)
    first, second, of = (each.astype(np.int64) for each in (judged, people, places))
    return joint_agreement(first, second, shares, of, weights, len(compared))


def _series(
    compared: Sequence[_Compared], seed: int, key: tuple[str, ...]
) -> tuple[FloatArray, FloatArray, IntArray, FloatArray]:
    """What a coefficient takes: both scores of each sentence, its response, and how often that is drawn."""
    responses = [each.response for each in compared]
    return (
        np.array([sum(each.people) / len(each.people) for each in compared], dtype=np.float64),
        np.array([each.judged for each in compared], dtype=np.float64),
        _clusters(responses),
        cluster_weights(seed, key, len(set(responses))),
    )


def _clusters(responses: Sequence[tuple[int, int, int]]) -> IntArray:
    """Which response each thing belongs to, from 0."""
    places = {response: n for n, response in enumerate(sorted(set(responses)))}
    return np.array([places[response] for response in responses], dtype=np.int64)


def _pairs(
    judge: str,
    scores: Judged,
    answered: Sequence[Sequence[Annotation]],
    seed: int,
    key: tuple[str, ...],
    subject_weights: Mapping[Subject, float],
) -> AgreementWithJudge:
    """τ_A: answers that agree with the order of the judge's scores, less those against it, by all answers."""
    sums, counts, stands_for, without, same = [], [], [], 0, 0
    for answers in answered:
        first, second = _both(scores, answers[0])
        if first is None or second is None:
            without += 1
        elif first == second:
            same += 1
        else:
            sign = 1.0 if first > second else -1.0
            sums.append(sum(sign * sign_of(each) for each in answers))
            counts.append(float(len(answers)))
            stands_for.append(subject_weights.get(answers[0].subject, 0.0))
    rows = np.array([sums, counts, stands_for], dtype=np.float64)
    known = rows[:, rows[2] > 0]
    tau = signed_share(rows[0], rows[1], seed, key, NO_PAIRS)
    weighted = signed_share(known[0] * known[2], known[1] * known[2], seed, key, NOT_DRAWN)
    return AgreementWithJudge(
        judge=judge,
        kendall_tau=tau,
        weighted=WeightedWithJudge(kendall_tau=weighted),
        left_out={"without_score": without, "same_score": same},
    )


def signed_share(
    sums: FloatArray, counts: FloatArray, seed: int, key: tuple[str, ...], reason: str
) -> Metric:
    """τ_A, with its interval over pairs.

    Args:
        sums: Shape (n,): of each pair the answers that agree with a judge, less those against him.
        counts: Shape (n,): its answers.
        seed: The job's.
        key: What is resampled.
        reason: Why there is none without a pair.
    """
    if not len(sums):
        return Metric.missing(reason)
    value = float(sums.sum() / counts.sum())
    draws = ratio_draws(sums, counts, cluster_weights(seed, key, len(sums)))
    interval = percentile_interval(value, draws, len(sums), RANGE, "pairs")
    return Metric.of(value, len(sums)).within(interval)


def sign_of(each: Annotation) -> float:
    """1 for a pair's first sentence, −1 for its second, 0 for neither."""
    return _SIGNS[each.answer]


def _both(scores: Judged, pair: Annotation) -> tuple[float | None, float | None]:
    other = pair.other
    return scores.get((pair.dimension, pair.place)), (
        None if other is None else scores.get((pair.dimension, other))
    )
