"""A job's PersonaGym results (PersonaGym paper, section 4, Table 1 and Figure 4)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from pydantic import BaseModel, Field

from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import Metric
from app.domain.personagym.agreement import GradeAgreement, agreements
from app.domain.personagym.scores import (
    SCORES,
    Grade,
    GymResponses,
    GymTally,
    PersonaResult,
    Spread,
    mean_over_personas,
    persona_results,
    spread,
)
from app.domain.results.coverage import Coverage
from app.domain.statistics.groups import PersonaSample

NO_MATCH = "no_match: there is no persona of which every model has a PersonaScore"
NO_ANSWER = "no_answer: there is no answer"


class TaskTotal(Spread):
    """A task's score over personas."""

    coverage: Coverage


class PersonaScoreCorrected(BaseModel):
    """How missing grades could affect the PersonaScore. Not in the paper."""

    persona_score_bounds: tuple[float, float] | None = Field(
        description="PersonaScore if all missing grades were the lowest, and if all were the highest; `null` "
        "if none is planned."
    )


class PersonaScoreTotal(BaseModel):
    """A model's scores over personas: a row of PersonaGym's Table 1."""

    model: str
    persona_score: Spread
    tasks: dict[str, TaskTotal]
    refusal_rate: Metric = Field(description="Refusals ÷ (answers + refusals), as in Figure 4.")
    responses: GymResponses
    grades: UnitCounts
    coverage: Coverage = Field(description="Coverage of the planned grades.")
    corrected: PersonaScoreCorrected
    matched: Metric | None = Field(
        None,
        description="PersonaScore over the personas for which every model has one; `null` if these are all.",
    )


class GymResults(NamedTuple):
    """PersonaScores by persona and by model, and how well the judges agree."""

    persona_scores: Sequence[PersonaResult]
    persona_score_totals: Sequence[PersonaScoreTotal]
    judge_agreement: Sequence[GradeAgreement]


def gym_results(
    tallies: Sequence[GymTally],
    grades: Sequence[Grade],
    tasks: Sequence[str],
    judges: int,
    seed: int | None = None,
) -> GymResults:
    """A job's PersonaGym results.

    Args:
        tallies: The responses of every cell.
        grades: Every grade; a failed response has failed grades.
        tasks: Ids of the job's tasks.
        judges: How many judges grade each response; one need not have graded any yet.
        seed: Of the resampling behind the intervals; ``None`` for figures without intervals.
    """
    results = persona_results(grades, tasks, seed, tallies)
    sample = None if seed is None else PersonaSample([tally.persona for tally in tallies], seed)
    matched = _matched(results, sample)
    totals = []
    for model in dict.fromkeys(result.model for result in results):
        own = [tally for tally in tallies if tally.model == model]
        scores = [result for result in results if result.model == model]
        totals.append(_total(scores, own, _graded(own, grades, judges), matched.get(model), sample))
    return GymResults(results, totals, agreements(grades, tasks, sample))


def _total(
    results: Sequence[PersonaResult],
    tallies: Sequence[GymTally],
    graded: Sequence["_Graded"],
    matched: Metric | None,
    sample: PersonaSample | None,
) -> PersonaScoreTotal:
    """One model's."""
    tasks = {
        task: spread({result.persona: result.tasks[task] for result in results}, sample)
        for task in results[0].tasks
    }
    return PersonaScoreTotal(
        model=results[0].model,
        persona_score=spread({result.persona: result.persona_score for result in results}, sample),
        tasks={
            task: TaskTotal(
                **score.to_json(), coverage=_coverage([each for each in graded if each.task == task])
            )
            for task, score in tasks.items()
        },
        refusal_rate=_refusal_rate(tallies, sample),
        responses=GymResponses.sum(tally.responses for tally in tallies),
        grades=UnitCounts.sum([score.grades for result in results for score in result.tasks.values()]),
        coverage=_coverage(graded),
        corrected=PersonaScoreCorrected(persona_score_bounds=_bounds(graded)),
        matched=matched,
    )


def range_over_models(scores: Iterable[float | None]) -> float | None:
    """How far the highest of models' scores lies above the lowest (PersonaGym paper, section 4.2); ``None`` for fewer than two."""
    known = [score for score in scores if score is not None]
    return max(known) - min(known) if len(known) > 1 else None


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
            tally.responses.due * judges,
        )
        for tally in own
    ]


def _coverage(graded: Sequence[_Graded]) -> Coverage:
    counted = sum(len(each.scores) for each in graded)
    return Coverage.of(counted, 0, sum(each.planned for each in graded))


def _bounds(graded: Sequence[_Graded]) -> tuple[float, float] | None:
    """PersonaScore if all missing grades were the lowest, and if all were the highest; ``None`` without a planned one.

    Each task of a persona counts the same, so the mean over persona and task is PersonaScore's over personas.
    """
    if not graded or not all(each.planned for each in graded):
        return None
    low, high = (
        fmean((sum(each.scores) + end * (each.planned - len(each.scores))) / each.planned for each in graded)
        for end in SCORES
    )
    return low, high


def _matched(results: Sequence[PersonaResult], sample: PersonaSample | None) -> dict[str, Metric]:
    """Each model's PersonaScore over the personas of which every model has one; empty where these are all."""
    scores: dict[str, dict[str, float]] = {result.model: {} for result in results}
    for result in results:
        if result.persona_score.value is not None:
            scores[result.model][result.persona] = result.persona_score.value
    personas = list(dict.fromkeys(result.persona for result in results))
    common = [persona for persona in personas if all(persona in own for own in scores.values())]
    left_out = len(personas) - len(common)
    if not left_out:
        return {}
    return {
        model: mean_over_personas({persona: own[persona] for persona in common}, NO_MATCH, sample).model_copy(
            update={"left_out": left_out}
        )
        for model, own in scores.items()
    }


def _refusal_rate(tallies: Sequence[GymTally], sample: PersonaSample | None) -> Metric:
    """Refusals among the responses that there are."""
    refused = [tally.responses.refused for tally in tallies]
    written = [tally.responses.refused + tally.responses.answered for tally in tallies]
    if not sum(written):
        return Metric.missing(NO_ANSWER)
    rate = sum(refused) / sum(written)
    metric = Metric.of(rate, sum(written))
    if sample is None:
        return metric
    personas = [tally.persona for tally in tallies]
    return metric.within(sample.interval(rate, personas, refused, written, (0.0, 1.0)))
