"""A person's session in a labelling round: what to show next, and recording their answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import preparations
from app.db.labels import annotations
from app.db.labels import rounds as labelling
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.task import asks_a_question
from app.domain.jobs.plan import AtomicCell, GymCell
from app.domain.labels.annotation import Annotation, Answer, Place
from app.domain.labels.rounds import is_turned, order_for
from app.domain.personagym.specification import question_item
from app.services.errors import NotFoundError
from app.services.job_context import JobContext, JobContexts
from app.services.labels.rounds import Round, read_round

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class ShownSentence:
    """A sentence as people see it. All texts are untrusted.

    Attributes:
        text: The sentence.
        question: What it answers, where judges are told that too; else ``None``.
        persona: Whose it should be, where that is what judges are asked about; else ``None``.
    """

    text: str
    question: str | None
    persona: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """One thing of a round, for one person.

    Attributes:
        position: Its place in the person's order, from 1.
        sentences: One, or the left and the right one of a pair.
        said: What the person said of it before: a score, ``not_applicable``, ``left``, ``right`` or ``equal``.
    """

    position: int
    sentences: tuple[ShownSentence, ...]
    said: str | None


@dataclass(frozen=True, slots=True)
class SessionState:
    """A person's progress in a round.

    Attributes:
        dimension: What is asked about.
        pairs: Whether pairs are shown.
        count: How many things there are.
        answered: How many of them the person has answered.
        shown: The one to show; ``None`` where all are answered and none was asked for.
    """

    dimension: Dimension
    pairs: bool
    count: int
    answered: int
    shown: Shown | None


class NotAnAnswerError(Exception):
    """What was said is no answer to what was asked."""


async def read_session(
    engine: AsyncEngine,
    contexts: JobContexts,
    tenant: str,
    round_id: str,
    annotator: str,
    position: int | None = None,
) -> SessionState:
    """What a person sees: the item at a position, or the first one they have not answered.

    Raises:
        NotFoundError: If there is no such round or position, or what was drawn is not there any more.
    """
    found = await read_round(engine, contexts, tenant, round_id)
    order = order_for(annotator, round_id, len(found.things))
    async with engine.connect() as connection:
        said = await labelling.answers_of(connection, tenant, round_id, annotator)
    if position is None:
        position = next((n for n, index in enumerate(order, 1) if index not in said), None)
    shown = None
    if position is not None:
        index = _index(order, position)
        turned = is_turned(annotator, round_id, index)
        context = await contexts.get(tenant, found.row.job_id)
        places = [place for place in found.things[index] if place is not None]
        async with engine.connect() as connection:
            sentences = await _sentences(connection, tenant, found, context, places)
        ordered = sentences[::-1] if turned else sentences
        shown = Shown(position, tuple(ordered), _spoken(said.get(index), turned=turned))
    pairs = found.things[0][1] is not None
    return SessionState(found.dimension, pairs, len(order), len(said), shown)


async def record_answer(
    engine: AsyncEngine,
    contexts: JobContexts,
    tenant: str,
    round_id: str,
    annotator: str,
    position: int,
    answer: str,
) -> None:
    """Record a person's answer, replacing an earlier one.

    Raises:
        NotFoundError: If there is no such round or position.
        NotAnAnswerError: If it is no answer to what was asked.
    """
    found = await read_round(engine, contexts, tenant, round_id)
    index = _index(order_for(annotator, round_id, len(found.things)), position)
    turned = is_turned(annotator, round_id, index)
    place, other = found.things[index]
    meant, score = _meant(found, answer, pair=other is not None, turned=turned)
    annotation = Annotation(annotator, found.dimension.id, place, other, meant, score)
    try:
        async with engine.begin() as connection:
            await annotations.keep(connection, tenant, found.row.job_id, [annotation])
    except IntegrityError as error:
        raise NotFoundError("job not found") from error


def _index(order: Sequence[int], position: int) -> int:
    if not 1 <= position <= len(order):
        raise NotFoundError("no sentence at this position of the round")
    return order[position - 1]


def _meant(found: Round, answer: str, *, pair: bool, turned: bool) -> tuple[Answer, int | None]:
    if pair:
        first, second = (RIGHT, LEFT) if turned else (LEFT, RIGHT)
        meant = {first: Answer.FIRST, second: Answer.SECOND, Answer.EQUAL.value: Answer.EQUAL}.get(answer)
        if meant is None:
            raise NotAnAnswerError("must be left, right or equal")
        return meant, None
    if answer == Answer.NOT_APPLICABLE:
        return Answer.NOT_APPLICABLE, None
    scale = found.dimension.scale
    scores = {str(score): score for score in range(scale.minimum, scale.maximum + 1)}
    if answer not in scores:
        raise NotAnAnswerError(f"must be a score from {scale.minimum} to {scale.maximum}")
    return Answer.SCORED, scores[answer]


def _spoken(said: tuple[Answer, int | None] | None, *, turned: bool) -> str | None:
    """A former answer, with its score if it has one, in the page's words."""
    if said is None:
        return None
    answer, score = said
    if score is not None:
        return str(score)
    sides = (RIGHT, LEFT) if turned else (LEFT, RIGHT)
    return dict(zip((Answer.FIRST, Answer.SECOND), sides, strict=True)).get(answer, answer.value)


async def _sentences(
    connection: AsyncConnection, tenant: str, found: Round, context: JobContext, places: Sequence[Place]
) -> list[ShownSentence]:
    texts = await labelling.sentences(connection, tenant, found.row.job_id, places)
    if len(texts) < len(places):
        raise NotFoundError("sentence not found: the job was retried")
    shown = []
    for place in places:
        cell = context.cells[place.cell]
        question: str | None = None
        persona: str | None = None
        if isinstance(cell, AtomicCell) and asks_a_question(cell.task):
            question = cell.items[place.item].text
        elif isinstance(cell, GymCell):
            asked = {(cell.person, cell.task.id)}
            steps = await preparations.questions_of_job(connection, tenant, found.row.job_id, asked)
            questions = [step.content for step in steps.values()]
            question = question_item(place.item, questions[0] if questions else (), cell.dimensions).text
            persona = cell.persona.description
        shown.append(ShownSentence(texts[place], question, persona))
    return shown
