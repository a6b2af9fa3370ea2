"""How far people agree with each judge and with their mean, by model and task and over personas, and with each other.

After the atomic paper's Table 3 and PersonaGym's Table 2.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from app.domain.labels.agreement import NO_PAIRS, Judged, answer_counts, sign_of, signed_share
from app.domain.labels.annotation import Annotation, Answer, Kind, Place
from app.domain.labels.human_agreement import AmongAnnotators, ModelAgreement
from app.domain.metrics.metric import FloatArray, Metric
from app.domain.statistics.fleiss import NO_JOINT, fleiss_kappa
from app.domain.statistics.krippendorff import alpha_within, coincidences_of
from app.domain.statistics.rank import (
    PERMUTATIONS,
    ROUNDING,
    kendall_tau,
    permutation_test,
    spearman_rho,
)
from app.domain.statistics.resampling import chance, cluster_weights

_KEY = ("human study",)
_T = TypeVar("_T")
_KeyT = TypeVar("_KeyT", bound=Hashable)


class RatedCell(NamedTuple):
    """Whose responses a cell has.

    Attributes:
        model: The model's label.
        persona: The persona's index.
        task: The task's id.
        graded: Whether it is PersonaGym's.
    """

    model: str
    persona: int
    task: str
    graded: bool


class _Rated(NamedTuple):
    """A sentence or response with the mean of what people gave it, and what each judge did."""

    cell: RatedCell
    question: int
    people: float
    judged: Mapping[str, float]

    def by(self, judge: str | None) -> float | None:
        """The judge's score, or the mean of the judges'."""
        if judge is not None:
            return self.judged.get(judge)
        return float(np.mean(list(self.judged.values()))) if self.judged else None


class _Point(NamedTuple):
    """What is compared: a sentence, a response, or a persona."""

    persona: int
    people: float
    judged: float


@dataclass(frozen=True, slots=True)
class Study:
    """A job's annotations, and what its judges say of the same.

    Attributes:
        annotations: All of the job, each annotator's once for each thing, pairs in order.
        cells: The job's, by ordinal.
        judges: What each judge gave, by label.
        seed: The job's.
    """

    annotations: Sequence[Annotation]
    cells: Sequence[RatedCell]
    judges: Mapping[str, Judged]
    seed: int

    def among_annotators(self) -> list[AmongAnnotators]:
        """By kind and dimension; of grades by task."""
        groups = _grouped(
            self.annotations, lambda each: (each.kind.value, each.dimension or "", self._rubric(each) or "")
        )
        return [self._among(found) for _, found in sorted(groups.items())]

    def agreement(self) -> list[ModelAgreement]:
        """Of sentences and responses by dimension, model and task, of graded ones also over personas; of pairs by dimension."""
        found: list[ModelAgreement] = []
        kinds = _grouped(self.annotations, lambda each: (each.kind.value, each.dimension or ""))
        for (kind, dimension), annotations in sorted(kinds.items()):
            if kind == Kind.PAIRS:
                found += [self._of_pairs(dimension, annotations, judge) for judge in self._who()]
                continue
            of_model = _grouped(self._rated(annotations), lambda each: each.cell.model)
            for model, rated in sorted(of_model.items()):
                by_task = _grouped(rated, lambda each: each.cell.task)
                keys = {"kind": kind, "dimension": dimension or None, "model": model}
                for task, of_task in sorted(by_task.items()):
                    found += [self._of_task(keys, task, of_task, judge) for judge in self._who()]
                if not dimension:
                    found += [self._over_personas(keys, rated, judge) for judge in self._who()]
        return found

    def _who(self) -> list[str | None]:
        """The judges, and their mean where there are several."""
        return [*self.judges, *([None] if len(self.judges) > 1 else [])]

    def _rubric(self, each: Annotation) -> str | None:
        return None if each.dimension is not None else self.cells[each.place.cell].task

    def _rated(self, annotations: Sequence[Annotation]) -> list[_Rated]:
        found = []
        subjects = _grouped(annotations, lambda each: (each.place, each.dimension))
        for (place, dimension), answers in sorted(subjects.items(), key=lambda each: _order(each[0][0])):
            given = [each.score for each in answers if each.score is not None]
            judged = {
                judge: scores[dimension, place]
                for judge, scores in self.judges.items()
                if (dimension, place) in scores
            }
            if given:
                people = sum(given) / len(given)
                found.append(_Rated(self.cells[place.cell], place.item, people, judged))
        return found

    def _of_task(
        self, keys: Mapping[str, str | None], task: str, rated: Sequence[_Rated], judge: str | None
    ) -> ModelAgreement:
        points = [
            _Point(each.cell.persona, each.people, score)
            for each in rated
            if (score := each.by(judge)) is not None
        ]
        return self._correlated(keys, task, judge, points, len(rated))

    def _over_personas(
        self, keys: Mapping[str, str | None], rated: Sequence[_Rated], judge: str | None
    ) -> ModelAgreement:
        """PersonaScore by people and by the judge, of the same responses; of personas with a response to each task."""
        tasks = {each.task for each in self.cells if each.graded}
        points = []
        by_persona = _grouped(rated, lambda each: each.cell.persona)
        for persona, of_persona in sorted(by_persona.items()):
            known = [each for each in of_persona if each.by(judge) is not None]
            if {each.cell.task for each in known} == tasks:
                people = _persona_score(known, lambda each: each.people)
                points.append(_Point(persona, people, _persona_score(known, lambda each: each.by(judge))))
        return self._correlated(keys, None, judge, points, len(by_persona))

    def _correlated(
        self,
        keys: Mapping[str, str | None],
        task: str | None,
        judge: str | None,
        points: Sequence[_Point],
        rated: int,
    ) -> ModelAgreement:
        people = np.array([each.people for each in points], dtype=np.float64)
        judged = np.array([each.judged for each in points], dtype=np.float64)
        personas = np.array([each.persona for each in points], dtype=np.int64)
        weights = cluster_weights(self.seed, _KEY, max(each.persona for each in self.cells) + 1)
        names = [each or "" for each in (*keys.values(), task, judge)]
        tau_p, rho_p = permutation_test(people, judged, personas, chance(self.seed, (*_KEY, *names)))
        return ModelAgreement.model_validate(
            {
                **keys,
                "task": task,
                "judge": judge,
                "personas": len(set(personas.tolist())),
                "left_out": rated - len(points),
                "kendall_tau": kendall_tau(people, judged, personas, weights, "personas"),
                "kendall_p": tau_p,
                "spearman_rho": spearman_rho(people, judged, personas, weights, "personas"),
                "spearman_p": rho_p,
            }
        )

    def _of_pairs(
        self, dimension: str, annotations: Sequence[Annotation], judge: str | None
    ) -> ModelAgreement:
        """τ_A, with the p of a sign test: were there no relation, each pair's answers could as well be the other way round."""
        subjects = _grouped(annotations, lambda each: (each.place, each.other))
        rows = []
        for (place, other), answers in sorted(subjects.items()):
            apart = self._apart(dimension, place, other, judge)
            if apart:
                sign = 1.0 if apart > 0 else -1.0
                rows.append((sign * sum(map(sign_of, answers)), float(len(answers))))
        sums, counts = np.array(rows, dtype=np.float64).reshape(-1, 2).T
        names = (*_KEY, "pairs", dimension)
        personas = {self.cells[place.cell].persona for subject in subjects for place in subject if place}
        return ModelAgreement(
            kind="pairs",
            dimension=dimension,
            model=None,
            task=None,
            judge=judge,
            personas=len(personas),
            left_out=len(subjects) - len(rows),
            kendall_tau=signed_share(sums, counts, self.seed, names, NO_PAIRS),
            kendall_p=self._sign_test(sums, (*names, judge or "")) if rows else None,
            spearman_rho=None,
            spearman_p=None,
        )

    def _sign_test(self, sums: FloatArray, key: Sequence[str]) -> float:
        signs = chance(self.seed, key).choice((-1.0, 1.0), (PERMUTATIONS, len(sums)))
        as_far = np.abs(signs @ sums) >= abs(sums.sum()) - ROUNDING
        return float((1 + as_far.sum()) / (1 + PERMUTATIONS))

    def _apart(self, dimension: str, place: Place, other: Place | None, judge: str | None) -> float | None:
        """The first sentence's score less the second's, of judges that gave both."""
        if other is None:
            return None
        found = [
            scores[dimension, place] - scores[dimension, other]
            for each, scores in self.judges.items()
            if judge in {None, each} and (dimension, place) in scores and (dimension, other) in scores
        ]
        return float(np.mean(found)) if found else None

    def _among(self, annotations: Sequence[Annotation]) -> AmongAnnotators:
        first = annotations[0]
        subjects = _grouped(annotations, lambda each: (each.place, each.other))
        things = sorted(subjects, key=lambda each: (_order(each[0]), each[1] is not None and _order(each[1])))
        answered = [sorted(subjects[each], key=lambda one: one.annotator) for each in things]
        key = (*_KEY, "among", first.kind.value, first.dimension or "", self._rubric(first) or "")
        return AmongAnnotators(
            kind=first.kind.value,
            dimension=first.dimension,
            task=self._rubric(first),
            annotators=len({each.annotator for each in annotations}),
            n=len(answered),
            answers=len(annotations),
            fleiss_kappa=fleiss_kappa(
                answer_counts(answered), cluster_weights(self.seed, key, len(answered))
            ),
            alpha_ordinal=None if first.kind is Kind.PAIRS else self._alpha(answered),
        )

    def _alpha(self, answered: Sequence[Sequence[Annotation]]) -> Metric:
        """Krippendorff's α of the scores; who found a sentence not applicable gave none."""
        scored = [[each for each in answers if each.answer is Answer.SCORED] for answers in answered]
        joint = [answers for answers in scored if len(answers) > 1]
        if not joint:
            return Metric.missing(NO_JOINT)
        personas = [self.cells[answers[0].place.cell].persona for answers in joint]
        known, clusters = np.unique(personas, return_inverse=True)
        weights = cluster_weights(self.seed, _KEY, max(each.persona for each in self.cells) + 1)
        scores = [[each.score for each in answers] for answers in joint]
        kinds = sorted({score for given in scores for score in given if score is not None})
        counts = np.array([[given.count(kind) for kind in kinds] for given in scores], dtype=np.float64)
        tables = coincidences_of(counts, clusters)
        return alpha_within(tables, weights[known], len(joint), ordinal=True)


def _persona_score(rated: Sequence[_Rated], score: Callable[[_Rated], float | None]) -> float:
    """The mean over tasks of the mean over questions of the mean over responses."""
    by_task = _grouped(rated, lambda each: each.cell.task)
    means = []
    for _, of_task in sorted(by_task.items()):
        questions = _grouped(of_task, lambda each: each.question).values()
        means.append(np.mean([np.mean([score(each) for each in of_question]) for of_question in questions]))
    return float(np.mean(means))


def _order(place: Place) -> tuple[int, ...]:
    """Places in order, a whole response before its sentences."""
    return *place.response, -1 if place.unit is None else place.unit


def _grouped(members: Iterable[_T], key: Callable[[_T], _KeyT]) -> dict[_KeyT, list[_T]]:
    groups: dict[_KeyT, list[_T]] = defaultdict(list)
    for member in members:
        groups[key(member)].append(member)
    return groups
