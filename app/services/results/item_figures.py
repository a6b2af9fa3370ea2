"""One model's values per item, for paired comparisons."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.jobs import JobRow
from app.db.jobs.preparations import StoredStep
from app.db.results import result_queries
from app.db.results.result_queries import ScoreRow
from app.domain.jobs.plan import AtomicCell, Cell, gym
from app.domain.metrics.cell import combine_judges, measure
from app.domain.metrics.registry import range_of
from app.domain.personagym.scores import SCORES, Grade, question_scores
from app.domain.personagym.specification import question_item
from app.domain.results.comparison import METRICS, TASK_SCORE, Figure, Place, sentences_of
from app.services.job_context import JobContext
from app.services.results.cell_rows import cell_scores
from app.services.results.compute import read_grades

Questions = Mapping[tuple[int, str], StoredStep]
ItemFigures = dict[tuple[str, Place], Figure]

NO_GRADE = "no_grade: no judge graded an answer to it"


async def read_item_figures(engine: AsyncEngine, job: JobRow, context: JobContext, model: str) -> ItemFigures:
    """A model's figures by metric and place, each item of a persona being a place of its own.

    An item's metric is what it would be if the item were all of its cell: a mean over the runs that answered it.
    """
    cells = [cell for cell in context.cells if context.spec.models[cell.model].label == model]
    async with engine.connect() as connection:
        ordinals = [cell.ordinal for cell in cells]
        rows = [row async for row in result_queries.scores(connection, job.tenant, job.id, ordinals)]
        grades, questions = [], {}
        if context.spec.gym is not None:
            grades = [grade for grade in await read_grades(connection, job, context) if grade.model == model]
            questions = await preparations.questions_of_job(connection, job.tenant, job.id)
    return await asyncio.to_thread(item_figures, cells, rows, grades, questions)


def item_figures(
    cells: Sequence[Cell], rows: Iterable[ScoreRow], grades: Sequence[Grade], questions: Questions
) -> ItemFigures:
    """See :func:`read_item_figures`; CPU only.

    Args:
        cells: The model's.
        rows: Their scores, in any order.
        grades: The model's.
        questions: PersonaGym's, by the persona's index and task.
    """
    found: ItemFigures = {}
    by_ordinal = {cell.ordinal: cell for cell in cells}
    grouped: dict[tuple[int, int, int], dict[int, list[ScoreRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        grouped[row.cell, row.trait, row.item][row.judge].append(row)
    for (ordinal, trait, item), by_judge in grouped.items():
        cell = by_ordinal[ordinal]
        metrics = combine_judges(
            [measure(cell_scores(cell, trait, own)) for _, own in sorted(by_judge.items())]
        )
        dimension = cell.dimensions[trait]
        scale = (float(dimension.scale.minimum), float(dimension.scale.maximum))
        level = cell.persona.traits[trait].level
        place = Place(cell.persona.id, cell.task.id, dimension.id, level, _text(cell, item, questions))
        for name in METRICS:
            metric = metrics[name]
            sentences = sentences_of(
                name,
                scored=metrics.units.scored,
                runs=metrics.runs.used * len(by_judge),
                responses=metrics.responses.total - metrics.responses.without_scored_unit,
            )
            found[name, place] = Figure(
                metric.value, metric.reason, range_of(name, scale), sentences, metric.n
            )
    return found | _graded(cells, grades, questions)


def _graded(cells: Sequence[Cell], grades: Sequence[Grade], questions: Questions) -> ItemFigures:
    """PersonaGym's scores, question by question."""
    found: ItemFigures = {}
    of_cell: dict[tuple[str, str], list[Grade]] = defaultdict(list)
    for grade in grades:
        of_cell[grade.persona, grade.task].append(grade)
    for cell in gym(cells):
        own = of_cell[cell.persona.id, cell.task.id]
        scores = question_scores(own)
        for number in {grade.question for grade in own}:
            place = Place(cell.persona.id, cell.task.id, "", "", _text(cell, int(number), questions))
            value = scores.get(number)
            found[TASK_SCORE, place] = Figure(value, None if value is not None else NO_GRADE, SCORES)
    return found


def _text(cell: Cell, number: int, questions: Questions) -> str:
    """What an item asks, by which it is known in another job too; its name where it says nothing of its own."""
    if isinstance(cell, AtomicCell):
        item = cell.items[number]
    else:
        step = questions.get((cell.person, cell.task.id))
        item = question_item(number, () if step is None else step.content, cell.dimensions)
    return item.text or item.id
