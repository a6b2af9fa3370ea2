"""How far people agree with a job's judges, and with each other (atomic paper, section 4.3 and Table 3)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.annotation import Annotation, Answer, Kind, Place
from app.domain.metrics.metric import FloatArray, IntArray, Metric, metric_json
from app.domain.statistics.fleiss import fleiss_kappa
from app.domain.statistics.rank import RANGE, kendall_tau, spearman_rho
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws

Judged = Mapping[tuple[str | None, Place], float]
"""One judge's score by dimension and place: a sentence's, a response's grade or the mean of its sentences' scores."""

_SIGNS = {Answer.FIRST: 1.0, Answer.SECOND: -1.0, Answer.EQUAL: 0.0}
NO_PAIRS = "no_pairs: no pair has two different scores from this judge"


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How far annotators agree with one judge.

    Attributes:
        judge: Its label.
        kendall_tau: Of scores τ_b between the judge's and the annotators' mean, of pairs τ_A over all answers.
        spearman_rho: Between the same; ``None`` for pairs, which have none.
        without_score: Things with an answer that the judge gave no score.
        same_score: Pairs to whose sentences the judge gave the same score; ``None`` where there are no pairs.
    """

    judge: str
    kendall_tau: Metric
    spearman_rho: Metric | None
    without_score: int
    same_score: int | None


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """The answers about one kind of thing on one dimension.

    Attributes:
        kind: What was looked at.
        dimension: On which; ``None`` where PersonaGym's rubrics were used.
        task: The task whose rubric it was; ``None`` otherwise.
        annotators: How many people answered.
        things: How many things have an answer.
        answers: How many answers there are.
        not_applicable: Things that all who answered found to carry no such trait; in no correlation.
        fleiss_kappa: Among the annotators.
        judges: Each judge's agreement with them.
    """

    kind: Kind
    dimension: str | None
    task: str | None
    annotators: int
    things: int
    answers: int
    not_applicable: int
    fleiss_kappa: Metric
    judges: tuple[JudgeAgreement, ...]

    def to_json(self) -> dict[str, object]:
        """In the HTTP contract's form."""
        return {
            "kind": self.kind.value,
            "dimension": self.dimension,
            "task": self.task,
            "annotators": self.annotators,
            "n": self.things,
            "answers": self.answers,
            "not_applicable": self.not_applicable,
            "fleiss_kappa": metric_json(self.fleiss_kappa),
            "judges": [_judge_json(judge) for judge in self.judges],
        }


def annotation_agreement(
    annotations: Sequence[Annotation],
    tasks: Mapping[int, str],
    judges: Mapping[str, Judged],
    seed: int,
) -> list[AnnotatorAgreement]:
    """The agreement by kind and dimension; of PersonaGym's grades by task.

    Args:
        annotations: All of a job, each annotator's once for each thing, pairs in order.
        tasks: The task's id by its cells' ordinals.
        judges: What each judge gave, by label.
        seed: The job's.
    """
    groups: dict[tuple[str, str, str], list[Annotation]] = defaultdict(list)
    for each in annotations:
        rubric = "" if each.dimension is not None else tasks[each.place.cell]
        groups[each.kind.value, each.dimension or "", rubric].append(each)
    return [
        _group(Kind(kind), dimension or None, rubric or None, found, judges, seed)
        for (kind, dimension, rubric), found in sorted(groups.items())
    ]


def _group(
    kind: Kind,
    dimension: str | None,
    task: str | None,
    found: Sequence[Annotation],
    judges: Mapping[str, Judged],
    seed: int,
) -> AnnotatorAgreement:
    by_subject: dict[tuple[str | None, Place, Place | None], list[Annotation]] = defaultdict(list)
    for each in sorted(found, key=lambda one: (one.place, one.other or one.place, one.annotator)):
        by_subject[each.subject].append(each)
    answered = list(by_subject.values())
    key = ("annotations", kind.value, dimension or "", task or "")
    compare = _pairs if kind is Kind.PAIRS else _scores
    return AnnotatorAgreement(
        kind=kind,
        dimension=dimension,
        task=task,
        annotators=len({each.annotator for each in found}),
        things=len(answered),
        answers=len(found),
        not_applicable=sum(
            all(each.answer is Answer.NOT_APPLICABLE for each in answers) for answers in answered
        ),
        fleiss_kappa=fleiss_kappa(_counts(answered), cluster_weights(seed, key, len(answered))),
        judges=tuple(compare(judge, scores, answered, seed, key) for judge, scores in judges.items()),
    )


def _counts(answered: Sequence[Sequence[Annotation]]) -> FloatArray:
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
) -> JudgeAgreement:
    people, judged, responses, without = [], [], [], 0
    for answers in answered:
        given = [each.score for each in answers if each.score is not None]
        score = scores.get((answers[0].dimension, answers[0].place))
        without += score is None
        if given and score is not None:
            people.append(sum(given) / len(given))
            judged.append(score)
            responses.append(answers[0].place.response)
    clusters = _clusters(responses)
    weights = cluster_weights(seed, key, len(set(responses)))
    series = (np.array(people), np.array(judged, dtype=np.float64), clusters, weights)
    return JudgeAgreement(judge, kendall_tau(*series), spearman_rho(*series), without, None)


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
) -> JudgeAgreement:
    """τ_A: answers that agree with the order of the judge's scores, less those against it, by all answers."""
    sums, counts, without, same = [], [], 0, 0
    for answers in answered:
        first, second = _both(scores, answers[0])
        if first is None or second is None:
            without += 1
        elif first == second:
            same += 1
        else:
            sign = 1.0 if first > second else -1.0
            sums.append(sum(sign * _SIGNS[each.answer] for each in answers))
            counts.append(float(len(answers)))
    if not sums:
        return JudgeAgreement(judge, Metric.missing(NO_PAIRS), None, without, same)
    value = sum(sums) / sum(counts)
    draws = ratio_draws(np.array(sums), np.array(counts), cluster_weights(seed, key, len(sums)))
    interval = percentile_interval(value, draws, len(sums), RANGE, "pairs")
    return JudgeAgreement(judge, Metric(value, len(sums)).within(interval), None, without, same)


def _both(scores: Judged, pair: Annotation) -> tuple[float | None, float | None]:
    other = pair.other
    return scores.get((pair.dimension, pair.place)), (
        None if other is None else scores.get((pair.dimension, other))
    )


def _judge_json(found: JudgeAgreement) -> dict[str, object]:
    shown: dict[str, object] = {"judge": found.judge, "kendall_tau": metric_json(found.kendall_tau)}
    if found.spearman_rho is not None:
        shown["spearman_rho"] = metric_json(found.spearman_rho)
    left_out = {"without_score": found.without_score}
    if found.same_score is not None:
        left_out["same_score"] = found.same_score
    return shown | {"left_out": left_out}
