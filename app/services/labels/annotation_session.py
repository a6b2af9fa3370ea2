"""A person's session in a labelling round: what to show next, and recording their answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, repeat

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.preparations import StoredStep
from app.db.labels import annotations
from app.db.labels import rounds as labelling
from app.db.labels.rounds import RoundRow
from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.task import asks_a_question
from app.domain.jobs.plan import AtomicCell, GymCell
from app.domain.labels.annotation import Annotation, Answer, Place
from app.domain.labels.rounds import LabellingKind, is_turned, order_for
from app.domain.personagym.specification import question_item
from app.domain.personagym.task import GRADE_SCALE
from app.domain.providers.model import Stage
from app.instruments.guidelines import guideline_for
from app.services.errors import NotFoundError
from app.services.job_context import JobContext, JobContexts
from app.services.labels.rounds import Round, read_round

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class Grading:
    """One score of a rubric.

    Attributes:
        score: The score.
        guideline: What a response must meet for it.
        example: A response to the same question that would get it; ``None`` where the reasoner made none up. Untrusted.
    """

    score: int
    guideline: str
    example: str | None


@dataclass(frozen=True, slots=True)
class Rubric:
    """What judges grade a response by.

    Attributes:
        title: The task's name.
        description: What the task is about.
        scores: From the lowest.
    """

    title: str
    description: str
    scores: tuple[Grading, ...]


@dataclass(frozen=True, slots=True)
class ShownText:
    """A sentence or a response as people see it. All its texts are untrusted.

    Attributes:
        text: The sentence or response.
        question: What it answers, where judges are told that too; else ``None``.
        persona: Whose it should be, where that is what judges are asked about; else ``None``.
        rubric: Of a response.
    """

    text: str
    question: str | None
    persona: str | None
    rubric: Rubric | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """One thing of a round, for one person.

    Attributes:
        position: Its place in the person's order, from 1.
        texts: One, or the left and the right sentence of a pair.
        said: What the person said of it before: a score, ``not_applicable``, ``left``, ``right`` or ``equal``.
        before: The position of the one before it that the person may see; ``None`` at the first.
        after: Of the one after it; ``None`` at the last.
    """

    position: int
    texts: tuple[ShownText, ...]
    said: str | None
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class SessionState:
    """A person's progress in a round.

    Attributes:
        kind: What is shown.
        dimension: What is asked about; ``None`` where responses are graded.
        guideline: What people at the upper end of the dimension are like; ``None`` where nothing says so.
        count: How many things the person has answered or may answer.
        answered: How many of them the person has answered.
        last: The position of the last of them; ``None`` where there is none.
        shown: The one to show; ``None`` where all are answered and none was asked for.
    """

    kind: LabellingKind
    dimension: Dimension | None
    guideline: str | None
    count: int
    answered: int
    last: int | None
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
    each = found.row.answers_each
    async with engine.connect() as connection:
        said = await labelling.answers_of(connection, tenant, round_id, annotator)
        counts = {} if each is None else await labelling.answer_counts(connection, tenant, round_id)
    seen = [
        n for n, index in enumerate(order, 1) if index in said or each is None or counts.get(index, 0) < each
    ]
    if position is None:
        position = next((n for n in seen if order[n - 1] not in said), None)
    shown = None
    if position is not None:
        index = _index(order, position)
        turned = is_turned(annotator, round_id, index)
        context = await contexts.get(tenant, found.row.job_id)
        places = [place for place in found.things[index] if place is not None]
        async with engine.connect() as connection:
            texts = await _texts(connection, tenant, found, context, places)
        shown = Shown(
            position=position,
            texts=tuple(texts[::-1] if turned else texts),
            said=_spoken(said.get(index), turned=turned),
            before=max((n for n in seen if n < position), default=None),
            after=min((n for n in seen if n > position), default=None),
        )
    return SessionState(
        kind=LabellingKind(found.row.kind),
        dimension=found.dimension,
        guideline=None if found.dimension is None else guideline_for(found.dimension),
        count=len(seen),
        answered=len(said),
        last=max(seen, default=None),
        shown=shown,
    )


async def record_answer(
    engine: AsyncEngine,
    contexts: JobContexts,
    tenant: str,
    round_id: str,
    annotator: str,
    position: int,
    answer: str,
) -> None:
    """Record a person's answer, replacing an earlier one; none where as many others have answered as shall.

    Raises:
        NotFoundError: If there is no such round or position.
        NotAnAnswerError: If it is no answer to what was asked.
    """
    found = await read_round(engine, contexts, tenant, round_id)
    index = _index(order_for(annotator, round_id, len(found.things)), position)
    turned = is_turned(annotator, round_id, index)
    place, other = found.things[index]
    meant, score = _meant(found, answer, pair=other is not None, turned=turned)
    dimension = None if found.dimension is None else found.dimension.id
    annotation = Annotation(annotator, dimension, place, other, meant, score)
    try:
        async with engine.begin() as connection:
            if await _may_answer(connection, tenant, found.row, annotator, index):
                await annotations.keep(connection, tenant, found.row.job_id, [annotation])
    except IntegrityError as error:
        raise NotFoundError("job not found") from error


async def _may_answer(
    connection: AsyncConnection, tenant: str, row: RoundRow, annotator: str, index: int
) -> bool:
    """Whether fewer people than shall have answered it, or the person has; of two at once the one waits for the other."""
    if row.answers_each is None:
        return True
    await annotations.hold(connection, row.job_id)  # of which another round may have drawn the same
    counts = await labelling.answer_counts(connection, tenant, row.id)
    if counts.get(index, 0) < row.answers_each:
        return True
    return index in await labelling.answers_of(connection, tenant, row.id, annotator)


def _index(order: Sequence[int], position: int) -> int:
    if not 1 <= position <= len(order):
        raise NotFoundError("nothing at this position of the round")
    return order[position - 1]


def _meant(found: Round, answer: str, *, pair: bool, turned: bool) -> tuple[Answer, int | None]:
    if pair:
        first, second = (RIGHT, LEFT) if turned else (LEFT, RIGHT)
        meant = {first: Answer.FIRST, second: Answer.SECOND, Answer.EQUAL.value: Answer.EQUAL}.get(answer)
        if meant is None:
            raise NotAnAnswerError("must be left, right or equal")
        return meant, None
    if answer == Answer.NOT_APPLICABLE and found.dimension is not None:
        return Answer.NOT_APPLICABLE, None
    scale: Scale = GRADE_SCALE if found.dimension is None else found.dimension.scale
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


async def _texts(
    connection: AsyncConnection, tenant: str, found: Round, context: JobContext, places: Sequence[Place]
) -> list[ShownText]:
    texts = await labelling.texts_of(connection, tenant, found.row.job_id, places)
    if len(texts) < len(places):
        raise NotFoundError("text not found: the job was retried")
    shown = []
    for place in places:
        cell = context.cells[place.cell]
        text = ShownText(texts[place], None, None)
        if isinstance(cell, AtomicCell) and asks_a_question(cell.task):
            text = replace(text, question=cell.items[place.item].text)
        elif isinstance(cell, GymCell):
            steps = await preparations.steps_of_persona(
                connection, tenant, found.row.job_id, cell.person, cell.task.id
            )
            text = _graded(text, cell, place, steps)
        shown.append(text)
    return shown


def _graded(text: ShownText, cell: GymCell, place: Place, steps: Sequence[StoredStep]) -> ShownText:
    """A text with the question of its PersonaGym task, and a whole response with the rubric that judges have."""
    questions = [step.content for step in steps if step.kind == Stage.QUESTIONS]
    question = question_item(place.item, questions[0] if questions else (), cell.dimensions).text
    text = replace(text, question=question, persona=cell.persona.description)
    if place.unit is not None:
        return text
    task = cell.task.task
    found = [step.content for step in steps if step.kind == Stage.EXEMPLARS and step.item == place.item]
    examples = found[0] if found and len(found[0]) == len(task.guidelines) else repeat(None)
    scores = tuple(map(Grading, count(GRADE_SCALE.minimum), task.guidelines, examples))
    return replace(text, rubric=Rubric(task.title, task.description, scores))
