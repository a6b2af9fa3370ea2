"""PersonaScores and what they rest on, in the HTTP contract's form (PersonaGym paper, section 4 and Table 1)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev

import numpy as np
from scipy.stats import rankdata

Json = dict[str, object]

TASKS_OF_THE_PAPER = 5
GRADE_STATUSES = ("scored", "refused", "unparsed", "failed")
RESPONSE_STATUSES = ("answered", "refused", "failed")

NO_GRADE = "no_grade: no judge gave a score to any answer"
TASK_MISSING = (
    "task_missing: a task of the job has no score, and a mean over the others would not be comparable"
)
NO_PERSONA = "no_persona: no persona has the score"
NO_ANSWER = "no_answer: there is no answer"
TOO_FEW = "too_few: fewer than two answers have a score from both judges"
CONSTANT = "constant: a judge gave the same score to all answers"


@dataclass(frozen=True, slots=True)
class Grade:
    """One judge's grade of one answer.

    Attributes:
        run: The answer's run.
        item: The question.
        judge: The judge's index.
        status: One of ``GRADE_STATUSES``.
        score: Where ``status`` is ``scored``.
    """

    run: int
    item: int
    judge: int
    status: str
    score: int | None


@dataclass(frozen=True, slots=True)
class GradedCell:
    """All grades of one model × persona × task.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        task: The task's id.
        planned: Answers that the cell shall have.
        responses: Answers by status.
        grades: The grades, in any order.
    """

    model: str
    persona: str
    task: str
    planned: int
    responses: Mapping[str, int]
    grades: Sequence[Grade]

    def question_scores(self) -> list[float]:
        """The score of each question that has one: the mean over judges and, where there are several, over runs."""
        answers: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for grade in self.grades:
            if grade.score is not None:
                answers[grade.item][grade.run].append(grade.score)
        return [fmean(fmean(judges) for judges in runs.values()) for _, runs in sorted(answers.items())]


def gym_results(cells: Sequence[GradedCell], judges: Sequence[str]) -> Json:
    """A job's PersonaGym results: by persona, by model, and how well the judges agree.

    Args:
        cells: The job's PersonaGym cells.
        judges: The judges' labels, in their order.
    """
    by_persona: dict[tuple[str, str], list[GradedCell]] = defaultdict(list)
    for cell in cells:
        by_persona[cell.model, cell.persona].append(cell)
    scores = [_persona_json(by_persona[key]) for key in sorted(by_persona)]
    return {
        "persona_scores": scores,
        "persona_score_totals": [
            _model_json(model, [c for c in cells if c.model == model], scores)
            for model in sorted({cell.model for cell in cells})
        ],
        "judge_agreement": [
            _agreement(cells, task, judges, pair)
            for task in sorted({cell.task for cell in cells})
            for pair in combinations(range(len(judges)), 2)
        ],
    }


def _persona_json(cells: Sequence[GradedCell]) -> Json:
    tasks = {cell.task: _mean(cell.question_scores(), NO_GRADE) for cell in cells}
    values = [task["value"] for task in tasks.values()]
    known = [value for value in values if isinstance(value, float)]
    if len(known) == len(values):
        score: Json = {"value": fmean(known), "n": sum(len(cell.question_scores()) for cell in cells)}
    else:
        score = {"value": None, "n": 0, "reason": TASK_MISSING}
    return {
        "model": cells[0].model,
        "persona": cells[0].persona,
        "persona_score": score,
        "tasks": {cell.task: tasks[cell.task] | _exclusions([cell]) for cell in cells},
        "tasks_of_five": f"{len(cells)} of {TASKS_OF_THE_PAPER}",
        **_exclusions(cells),
    }


def _model_json(model: str, cells: Sequence[GradedCell], scores: Sequence[Json]) -> Json:
    own = [score for score in scores if score["model"] == model]
    refused = sum(cell.responses.get("refused", 0) for cell in cells)
    written = refused + sum(cell.responses.get("answered", 0) for cell in cells)
    rate: Json = {"value": refused / written, "n": written} if written else _missing(NO_ANSWER)
    tasks = sorted({cell.task for cell in cells})
    return {
        "model": model,
        "persona_score": _over_personas([_value(score["persona_score"]) for score in own]),
        "tasks": {
            task: _over_personas([_value(_member(score["tasks"], task)) for score in own]) for task in tasks
        },
        "personas": len(own),
        "refusal_rate": rate,
        **_exclusions(cells),
    }


def _over_personas(values: Sequence[float | None]) -> Json:
    """Mean and sample standard deviation over the personas that have the score, as in Table 1."""
    known = [value for value in values if value is not None]
    if not known:
        return _missing(NO_PERSONA) | {"sd": None, "left_out": len(values)}
    return {
        "value": fmean(known),
        "sd": stdev(known) if len(known) > 1 else None,
        "n": len(known),
        "left_out": len(values) - len(known),
    }


def _agreement(cells: Sequence[GradedCell], task: str, judges: Sequence[str], pair: tuple[int, int]) -> Json:
    """How well two judges agree on the answers that both scored."""
    first, second = _joint(cells, task, pair)
    found: Json = {"task": task, "judges": [judges[pair[0]], judges[pair[1]]], "n": len(first)}
    if len(first) < 2:  # noqa: PLR2004 - the least that can be correlated
        reason = {"value": None, "reason": TOO_FEW}
        return found | {"weighted_kappa": reason, "spearman": reason, "mean_absolute_difference": reason}
    differences = np.abs(first - second)
    return found | {
        "weighted_kappa": _or_constant(_weighted_kappa(first, second)),
        "spearman": _or_constant(_correlation(rankdata(first), rankdata(second))),
        "mean_absolute_difference": {"value": float(differences.mean())},
    }


_Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def _joint(cells: Sequence[GradedCell], task: str, pair: tuple[int, int]) -> tuple[_Floats, _Floats]:
    both: list[tuple[int, int]] = []
    for cell in (cell for cell in cells if cell.task == task):
        of_answer: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        for grade in cell.grades:
            if grade.score is not None:
                of_answer[grade.run, grade.item][grade.judge] = grade.score
        both += [(s[pair[0]], s[pair[1]]) for s in of_answer.values() if pair[0] in s and pair[1] in s]
    columns = np.array(both, dtype=np.float64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _weighted_kappa(first: _Floats, second: _Floats) -> float | None:
    """Cohen's κ with quadratic weights: 1 − observed over expected squared difference."""
    expected = float(np.mean((first[:, None] - second[None, :]) ** 2))
    return None if expected == 0 else 1 - float(np.mean((first - second) ** 2)) / expected


def _correlation(first: _Floats, second: _Floats) -> float | None:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _or_constant(value: float | None) -> Json:
    return {"value": None, "reason": CONSTANT} if value is None else {"value": value}


def _exclusions(cells: Sequence[GradedCell]) -> Json:
    responses: Counter[str] = Counter()
    grades: Counter[str] = Counter()
    for cell in cells:
        responses.update(cell.responses)
        grades.update(grade.status for grade in cell.grades)
    return {
        "responses": {"planned": sum(cell.planned for cell in cells)}
        | {status: responses[status] for status in RESPONSE_STATUSES},
        "grades": {"total": grades.total()} | {status: grades[status] for status in GRADE_STATUSES},
    }


def _mean(values: Sequence[float], reason: str) -> Json:
    return {"value": fmean(values), "n": len(values)} if values else _missing(reason)


def _missing(reason: str) -> Json:
    return {"value": None, "n": 0, "reason": reason}


def _member(mapping: object, name: str) -> object:
    return mapping.get(name) if isinstance(mapping, dict) else None


def _value(metric: object) -> float | None:
    value = _member(metric, "value")
    return value if isinstance(value, float) else None
