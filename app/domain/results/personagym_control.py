"""PersonaScore with and without the persona (PersonaGym paper, Figure 1), paired by question."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np
from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.metric import Metric
from app.domain.personagym.scores import NO_PERSONA, SCORES, Grade, question_scores
from app.domain.results.coverage import Coverage
from app.domain.statistics.groups import Influence, PersonaSample, stratified_interval

BOUNDS = (SCORES[0] - SCORES[1], SCORES[1] - SCORES[0])


class ScoreGain(Answer):
    """A score with and without the persona, over the questions graded in both arms, and the difference."""

    with_persona: float | None
    without: float | None
    gain: Metric = Field(description="`with_persona` − `without`, with its interval.")


class PersonaScoreGain(ScoreGain):
    """PersonaScore of one persona and model; its interval is over other questions."""

    model: str
    persona: str


class PersonaScoreGainTotal(ScoreGain):
    """A model's mean PersonaScore over personas; its interval is over other personas."""

    model: str
    tasks: dict[str, ScoreGain]
    coverage: Coverage = Field(description="Coverage of the grades planned without the persona.")


Pairs = Mapping[str, Sequence[tuple[float, float]]]
"""By task: the scores of the questions graded both ways, with the persona and without."""


def persona_score_gains(
    grades: Sequence[Grade],
    without: Sequence[Grade],
    planned: Mapping[str, int],
    tasks: Sequence[str],
    seed: int,
) -> tuple[list[PersonaScoreGain], list[PersonaScoreGainTotal]]:
    """By persona and model, and by model over personas.

    Args:
        grades: Those with the persona.
        without: Those of the control arm.
        planned: How many of these there shall be, by model.
        tasks: Ids of the job's tasks.
        seed: Of the resampling behind the totals' intervals.
    """
    if not grades:
        return [], []
    both = _by_persona(grades), _by_persona(without)
    pairs = {key: _pairs(both[0][key], both[1].get(key, ()), tasks) for key in sorted(both[0])}
    sample = PersonaSample([persona for _, persona in pairs], seed)
    of_personas = [_of_persona(*key, found) for key, found in pairs.items()]
    scored: Counter[str] = Counter()
    for grade in without:
        scored[grade.model] += grade.verdict.score is not None
    totals = [
        _total(
            model,
            {persona: found for (of, persona), found in pairs.items() if of == model},
            Coverage.of(scored[model], 0, planned.get(model, 0)),
            tasks,
            sample,
        )
        for model in dict.fromkeys(model for model, _ in pairs)
    ]
    return of_personas, totals


def _by_persona(grades: Sequence[Grade]) -> dict[tuple[str, str], list[Grade]]:
    found: dict[tuple[str, str], list[Grade]] = defaultdict(list)
    for grade in sorted(grades, key=lambda grade: grade.key):
        found[grade.model, grade.persona].append(grade)
    return found


def _pairs(grades: Sequence[Grade], without: Sequence[Grade], tasks: Sequence[str]) -> Pairs:
    found = {}
    for task in tasks:
        one, other = (
            question_scores(grade for grade in arm if grade.task == task) for arm in (grades, without)
        )
        found[task] = [(one[question], other[question]) for question in one if question in other]
    return found


def _of_persona(model: str, persona: str, pairs: Pairs) -> PersonaScoreGain:
    score = _score(pairs)
    if isinstance(score, str):
        return PersonaScoreGain(
            model=model, persona=persona, with_persona=None, without=None, gain=Metric.missing(score)
        )
    value, n = score[0] - score[1], sum(map(len, pairs.values()))
    interval = stratified_interval(value, [_influence(each) for each in pairs.values()], BOUNDS, "questions")
    gain = Metric.of(value, n).within(interval)
    return PersonaScoreGain(model=model, persona=persona, with_persona=score[0], without=score[1], gain=gain)


def _score(pairs: Pairs) -> tuple[float, float] | str:
    """PersonaScore with the persona and without; or why there is none."""
    lacking = [task for task, found in pairs.items() if not found]
    if lacking:
        return f"task_without_score: no question graded both ways for {', '.join(lacking)}"
    one, other = (fmean(fmean(pair[arm] for pair in found) for found in pairs.values()) for arm in (0, 1))
    return one, other


def _influence(pairs: Sequence[tuple[float, float]]) -> Influence | None:
    values = np.array([one - other for one, other in pairs], dtype=np.float64)
    n = len(values)
    return None if n < 2 else ((values - values.mean()) / math.sqrt(n * (n - 1)), n)  # noqa: PLR2004 - a spread


def _total(
    model: str, personas: Mapping[str, Pairs], coverage: Coverage, tasks: Sequence[str], sample: PersonaSample
) -> PersonaScoreGainTotal:
    by_task = {
        task: _over_personas(
            {persona: _score({task: found[task]}) for persona, found in personas.items()}, sample
        )
        for task in tasks
    }
    whole = _over_personas({persona: _score(found) for persona, found in personas.items()}, sample)
    return PersonaScoreGainTotal(model=model, tasks=by_task, coverage=coverage, **dict(whole))


def _over_personas(scores: Mapping[str, tuple[float, float] | str], sample: PersonaSample) -> ScoreGain:
    known = {persona: score for persona, score in scores.items() if not isinstance(score, str)}
    if not known:
        return ScoreGain(with_persona=None, without=None, gain=Metric.missing(NO_PERSONA))
    one, other = (fmean(score[arm] for score in known.values()) for arm in (0, 1))
    differences = [score[0] - score[1] for score in known.values()]
    interval = sample.interval(one - other, list(known), differences, [1.0] * len(known), BOUNDS)
    gain = Metric.of(one - other, len(known)).within(interval)
    gain = gain.model_copy(update={"left_out": len(scores) - len(known)})
    return ScoreGain(with_persona=one, without=other, gain=gain)
