"""The sentence of a job that is farthest out of character, found from the scores that its results are computed from."""

import asyncio
import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple
from zlib import crc32

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs.jobs import JobRow
from app.db.labels import rounds
from app.db.results.response_pages import Judgements, Position, judgements_of
from app.domain.instruments.segmentation import normalise
from app.domain.judging.verdict import VerdictStatus
from app.domain.labels.annotation import Place
from app.domain.results.contract import WorstSentence
from app.services.identifiers import response_id
from app.services.job_context import JobContext
from app.services.results.prompt_injection import Scores
from app.services.results.responses import levels_in_scores

LOOKED_AT = 20
"""Responses whose sentences are read, and then sentences whose texts are: those that may be farthest out of character."""
READABLE = 90
"""Characters that a reader takes in at once; of sentences that are equally far, the one of about so many is told."""

Levels = Mapping[tuple[int, int], tuple[int, int]]
"""For each (cell, trait) the lowest and the highest score that is in character."""


class _Likely(NamedTuple):
    """A response, the trait on which it is judged, and how far at most one of its sentences is from the level, in widths of the scale."""

    position: Position
    trait: int
    farthest: float


class _Sentence(NamedTuple):
    """A sentence, and how far it is from the level on the mean of the judges, in widths of the scale."""

    deviation: float
    outside: int
    place: Place
    trait: int
    scores: Mapping[int, int]


async def worst_sentence(
    connection: AsyncConnection, job: JobRow, context: JobContext, scores: Scores
) -> WorstSentence | None:
    """The sentence with the greatest mean distance of its scores from the persona's level; ``None`` if all are in character.

    Args:
        connection: Where.
        job: The job.
        context: Its specification and cells.
        scores: All of its score rows. Texts that may have swayed a judge are left out.
    """
    levels = await asyncio.to_thread(levels_in_scores, context.cells)
    likely = await asyncio.to_thread(_likely, context, levels, scores)
    if not likely:
        return None
    positions = list({each.position for each in likely})
    judged = await judgements_of(connection, job.tenant, job.id, positions, graded=False)
    found = heapq.nlargest(
        LOOKED_AT,
        (each for one in likely for each in _sentences(context, levels, one, judged[one.position])),
        key=lambda each: (each.deviation, each.outside, _lot(each.place)),
    )
    texts = await rounds.texts_of(connection, job.tenant, job.id, [each.place for each in found])
    worst = max(
        found, key=lambda each: (each.deviation, each.outside, -abs(len(texts[each.place]) - READABLE))
    )
    # Of imported verdicts the texts may not be known.
    return _told(job, context, worst, normalise(texts[worst.place])) if texts[worst.place] else None


def _likely(context: JobContext, levels: Levels, scores: Scores) -> list[_Likely]:
    """The responses that may have it; of equal ones some by lot, lest the first model's come first."""
    sums: dict[tuple[Position, int], float] = defaultdict(float)
    for (cell, trait, _), rows in scores.items():
        width = context.cells[cell].dimensions[trait].scale.width
        low, high = levels[cell, trait]
        for row in rows:
            if row.scores and not row.suspicious:
                outside = max(low - min(row.scores), max(row.scores) - high, 0)
                if outside:
                    sums[(cell, row.run, row.item), trait] += outside / width
    found = (_Likely(position, trait, far) for (position, trait), far in sums.items())
    return heapq.nlargest(LOOKED_AT, found, key=lambda each: (each.farthest, _lot(each.position)))


def _sentences(
    context: JobContext, levels: Levels, likely: _Likely, judged: Judgements
) -> Iterator[_Sentence]:
    """The sentences of a response that a judge finds out of character on a trait whom it can't have swayed."""
    cell, _, _ = likely.position
    low, high = levels[cell, likely.trait]
    width = context.cells[cell].dimensions[likely.trait].scale.width
    swayed = {
        judge
        for trait, judge, _, _, _, _, suspicion, *_ in judged.said
        if trait == likely.trait and suspicion
    }
    by_unit: dict[int, dict[int, int]] = defaultdict(dict)
    for unit, (trait, judge, status, score, *_) in zip(judged.units, judged.said, strict=True):
        told = status == VerdictStatus.SCORED and judge not in swayed
        if trait == likely.trait and told and score is not None:
            by_unit[unit][judge] = score
    for unit, scores in by_unit.items():
        distances = [max(low - score, score - high, 0) / width for score in scores.values()]
        if any(distances):
            outside = sum(map(bool, distances))
            yield _Sentence(fmean(distances), outside, Place(*likely.position, unit), likely.trait, scores)


def _told(job: JobRow, context: JobContext, worst: _Sentence, text: str) -> WorstSentence:
    spec, (cell, run, item, unit) = context.spec, worst.place
    place = context.cells[cell]
    dimension, level = place.dimensions[worst.trait], place.persona.traits[worst.trait].level
    assert unit is not None  # noqa: S101 - a sentence's place
    return WorstSentence(
        text=text,
        model=spec.models[place.model].label,
        persona=place.persona.id,
        task=place.task.id,
        dimension=dimension.id,
        level=level,
        scores={spec.judges[judge].label: score for judge, score in sorted(worst.scores.items())},
        response=response_id(job.id, cell, run, item),
        run=run,
        unit=unit,
    )


def _lot(place: Sequence[int | None]) -> int:
    return crc32("-".join(map(str, place)).encode())
