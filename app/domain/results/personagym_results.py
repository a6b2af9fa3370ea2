"""A job's PersonaGym results in the HTTP contract's form (PersonaGym paper, section 4, Table 1 and Figure 4)."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import Metric
from app.domain.personagym.agreement import Agreement, agreements
from app.domain.personagym.scores import (
    SCORES,
    Grade,
    ModelTotal,
    PersonaResult,
    Spread,
    model_totals,
    persona_results,
)
from app.domain.results.coverage import Coverage
from app.domain.statistics.groups import PersonaSample

Json = dict[str, object]

RESPONSE_STATUSES = ("answered", "refused", "failed", "filtered", "no_answer")
NO_MATCH = "no_match: there is no persona of which every model has a PersonaScore"
NO_ANSWER = "no_answer: there is no answer"
PAPER_TASKS = 5


@dataclass(frozen=True, slots=True)
class GymTally:
    """The responses of one model × persona × task.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        task: The task's id.
        planned: Responses that the cell shall have.
        responses: Responses by status, one of ``RESPONSE_STATUSES``.
    """

    model: str
    persona: str
    task: str
    planned: int
    responses: Mapping[str, int]


def gym_results(
    tallies: Sequence[GymTally],
    grades: Sequence[Grade],
    tasks: Sequence[str],
    judges: int,
    seed: int | None = None,
) -> Json:
    """PersonaScores by persona and by model, and how well the judges agree.

    Args:
        tallies: The responses of every cell.
        grades: Every grade; a failed response has failed grades.
        tasks: Ids of the job's tasks.
        judges: How many judges grade each response; one need not have graded any yet.
        seed: Of the resampling behind the intervals; ``None`` for figures without intervals.
    """
    results = persona_results(grades, tasks, seed)
    sample = None if seed is None else PersonaSample([tally.persona for tally in tallies], seed)
    of_persona: dict[tuple[str, str], list[GymTally]] = defaultdict(list)
    for tally in tallies:
        of_persona[tally.model, tally.persona].append(tally)
    matched = _matched(results, sample)
    return {
        "persona_scores": [_persona(result, of_persona[result.model, result.persona]) for result in results],
        "persona_score_totals": [
            _model(total, tallies, grades, judges, sample) | {"matched": matched.get(total.model)}
            for total in model_totals(results, sample)
        ],
        "judge_agreement": [_agreement(found) for found in agreements(grades, tasks, sample)],
    }


def _persona(result: PersonaResult, own: Sequence[GymTally]) -> Json:
    questions = sum(task.score.n for task in result.tasks.values())
    return {
        "model": result.model,
        "persona": result.persona,
        # The mean is over tasks, but what it rests on are questions.
        "persona_score": result.persona_score.to_json()
        | {"n": questions if result.persona_score.value is not None else 0},
        "tasks_in_job": len(result.tasks),
        "tasks_in_paper": PAPER_TASKS,
        "tasks": {
            id_: task.score.to_json()
            | {
                "questions": task.questions,
                "grades": _grades(task.grades),
                "by_judge": {judge: score.to_json() for judge, score in task.by_judge.items()},
                "responses": _responses([t for t in own if t.task == id_]),
            }
            for id_, task in result.tasks.items()
        },
        "responses": _responses(own),
    }


def _model(
    total: ModelTotal,
    tallies: Sequence[GymTally],
    grades: Sequence[Grade],
    judges: int,
    sample: PersonaSample | None,
) -> Json:
    own = [tally for tally in tallies if tally.model == total.model]
    graded = _graded(own, grades, judges)
    return {
        "model": total.model,
        "persona_score": _spread(total.persona_score),
        "tasks": {
            id_: _spread(spread) | {"coverage": _coverage([each for each in graded if each.task == id_])}
            for id_, spread in total.tasks.items()
        },
        "refusal_rate": _refusal_rate(own, sample),
        "responses": _responses(own),
        "grades": _grades(total.grades),
        "coverage": _coverage(graded),
        "corrected": {"persona_score_bounds": _bounds(graded)},
    }


class _Graded(NamedTuple):
    """A model's grades as one persona in one task: the scores that there are, and how many grades are planned."""

    task: str
    scores: list[int]
    planned: int


def _graded(own: Sequence[GymTally], grades: Sequence[Grade], judges: int) -> list[_Graded]:
    scores: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for grade in grades:
        if grade.verdict.score is not None:
            scores[grade.model, grade.persona, grade.task].append(grade.verdict.score)
    return [
        _Graded(
            tally.task,
            scores[tally.model, tally.persona, tally.task],
            max(tally.planned, sum(tally.responses.values())) * judges,
        )
        for tally in own
    ]


def _coverage(graded: Sequence[_Graded]) -> Json:
    counted = sum(len(each.scores) for each in graded)
    return Coverage.of(counted, 0, sum(each.planned for each in graded)).model_dump()


def _bounds(graded: Sequence[_Graded]) -> list[float] | None:
    """PersonaScore if all missing grades were the lowest, and if all were the highest; ``None`` without a planned one.

    Each task of a persona counts the same, so the mean over persona and task is PersonaScore's over personas.
    """
    if not graded or not all(each.planned for each in graded):
        return None
    return [
        fmean((sum(each.scores) + end * (each.planned - len(each.scores))) / each.planned for each in graded)
        for end in SCORES
    ]


def _matched(results: Sequence[PersonaResult], sample: PersonaSample | None) -> dict[str, Json]:
    """Each model's PersonaScore over the personas of which every model has one; empty where these are all."""
    scores = {(result.model, result.persona): result.persona_score.value for result in results}
    models = list(dict.fromkeys(model for model, _ in scores))
    personas = list(dict.fromkeys(persona for _, persona in scores))
    common = [
        persona for persona in personas if all(scores.get((model, persona)) is not None for model in models)
    ]
    if len(common) == len(personas):
        return {}
    found = {}
    for model in models:
        values = np.array([scores[model, persona] for persona in common], dtype=np.float64)
        mean = Metric.average(values, NO_MATCH)
        if mean.value is not None and sample is not None:
            counts = [1.0] * len(common)
            mean = mean.within(sample.interval(mean.value, common, values.tolist(), counts, SCORES))
        found[model] = mean.to_json() | {"left_out": len(personas) - len(common)}
    return found


def _refusal_rate(tallies: Sequence[GymTally], sample: PersonaSample | None) -> Json:
    """Refusals among the responses that there are, as in Figure 4."""
    refused = [tally.responses.get("refused", 0) for tally in tallies]
    written = [
        count + tally.responses.get("answered", 0) for count, tally in zip(refused, tallies, strict=True)
    ]
    if not sum(written):
        return Metric.missing(NO_ANSWER).to_json()
    rate = sum(refused) / sum(written)
    metric = Metric.of(rate, sum(written))
    if sample is not None:
        personas = [tally.persona for tally in tallies]
        metric = metric.within(sample.interval(rate, personas, refused, written, (0.0, 1.0)))
    return metric.to_json()


def _responses(tallies: Sequence[GymTally]) -> Json:
    counts: Counter[str] = Counter()
    for tally in tallies:
        counts.update(tally.responses)
    return {
        "planned": sum(tally.planned for tally in tallies),
        **{status: counts[status] for status in RESPONSE_STATUSES},
    }


def _agreement(found: Agreement) -> Json:
    return {
        "task": found.task,
        "judges": list(found.judges),
        "n": found.jointly_scored,
        "quadratic_kappa": found.quadratic_kappa.to_json(),
        "spearman": found.spearman.to_json(),
        "mean_absolute_difference": found.mean_absolute_difference.to_json(),
    }


def _grades(counts: UnitCounts) -> Json:
    return counts.model_dump(exclude={"total"}) | {"total": counts.total}


def _spread(spread: Spread) -> Json:
    return spread.mean.to_json() | {"sd": spread.sd, "left_out": spread.left_out}
