"""From a job's specification to cells, runs, items and shards, and what they will take."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.persona import Persona
from app.domain.instruments.prompts import scoring_prompt, system_prompt, user_prompt
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import AtomicTask, Item, item_count, items_for, judged_count
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.jobs.stage_estimate import (
    CHARACTERS_PER_TOKEN,
    EXPECTED_UNIT,
    JudgingSum,
    StageEstimate,
    expected_refusal_checks,
)
from app.domain.judging.grouping import calls_for, grouped_scoring_prompt
from app.domain.judging.order_check import ORDERS
from app.domain.personagym.specification import GymSpec, GymTaskSpec
from app.domain.providers.model import Model, Stage, Usage
from app.domain.providers.parameters import bounded_output, share_written

CALLS_PER_SHARD = 600
"""Planned calls of a shard: enough that claiming costs nothing per call, few enough that losing a worker is cheap."""


NOBODY = Persona("", "")
"""Whom a model plays in the control arm; no persona of a job has this id."""


@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of one model × persona × task. Each of the persona's traits becomes a cell of the results.

    In the control arm all runs of one model × task, asked without a persona and judged on every dimension of the job; of a PersonaGym
    task those of one persona's questions.

    Attributes:
        ordinal: Position among the job's cells, from 0.
        model: Index of the model in the specification.
        person: Index of the persona in the specification.
        persona: The persona, with the traits on which this cell's responses are judged.
        task: The task.
        dimensions: The dimensions of the persona's traits, in the traits' order.
        runs: How often each item is asked; 0 for existing texts.
        control: Whether it belongs to the control arm: its persona is not told to the model, and of atomic tasks it is :data:`NOBODY`.
    """

    ordinal: int
    model: int
    person: int
    persona: Persona
    task: AtomicTask | GymTaskSpec
    dimensions: tuple[Dimension, ...]
    runs: int
    control: bool = field(default=False, kw_only=True)

    def traits_of(self, item: Item) -> Iterator[tuple[int, Dimension]]:
        """The traits (by index) on which the item's responses are judged, with their dimensions."""
        return ((n, d) for n, d in enumerate(self.dimensions) if d.id in item.dimensions)


@dataclass(frozen=True, slots=True)
class AtomicCell(Cell):
    """A cell of an atomic task.

    Attributes:
        task: The task.
        items: What is asked in each run.
    """

    task: AtomicTask
    items: tuple[Item, ...]

    @property
    def verdicts_per_unit(self) -> float:
        """Traits on which a unit is judged, as a mean over the items."""
        return sum(len(item.dimensions) for item in self.items) / len(self.items)


@dataclass(frozen=True, slots=True)
class GymCell(Cell):
    """A cell of a PersonaGym task; its questions are known when its persona has been prepared.

    Attributes:
        task: The task, with what the job makes of it.
        questions: How many questions are expected.
        exact: Whether that is how many there will be.
    """

    task: GymTaskSpec
    questions: int
    exact: bool


def traits_at(cell: Cell, item: int) -> Iterable[tuple[int, Dimension]]:
    """The traits (by index) on which responses to an item of a cell are judged, with their dimensions."""
    return cell.traits_of(cell.items[item]) if isinstance(cell, AtomicCell) else enumerate(cell.dimensions)


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """A slice of a cell's runs, ``run_start <= run < run_stop``, done by one worker at a time."""

    cell: int
    run_start: int
    run_stop: int
    responses: int


def count_calls(spec: JobSpec) -> int:
    """About how many calls a generating job plans, by multiplication alone: without its cells, repeated verdicts and preparations.

    It is what :func:`estimate` and PersonaGym's estimate come to of generation, judging and refusal checks, within rounding.
    """
    by_id = {dimension.id: dimension for dimension in spec.dimensions}
    calls, judges, checks = 0.0, len(spec.judges), spec.checks_every_text
    asked = [tuple(by_id[trait.dimension] for trait in persona.traits) for persona in spec.personas]
    for dimensions in [*asked, spec.dimensions] if spec.control else asked:
        for task in spec.tasks if dimensions else ():
            items = item_count(task, dimensions)
            sentences = calls_for(task.expected_units, spec.grouping)
            calls += spec.runs * (items * (1 + checks) + judged_count(task, dimensions) * judges * sentences)
    if spec.gym is not None:
        for persona in spec.personas:
            calls += sum(_gym_calls(spec, spec.gym, persona, task) for task in spec.gym.tasks)
    return round(len(spec.models) * calls)


def _gym_calls(spec: JobSpec, gym: GymSpec, persona: Persona, task: GymTaskSpec) -> float:
    """Answers of one model, their grades and the verdicts on their sentences."""
    sentences = calls_for(task.expected_units, spec.grouping) if task.atomic else 0
    answers = task.runs * gym.question_count(persona, task)[0]
    graded = 1 + spec.checks_every_text + len(spec.judges)
    without = graded if spec.control else 0
    return answers * (graded + len(spec.judges) * sentences + without)


def cells_of(spec: JobSpec) -> tuple[Cell, ...]:
    """Every cell of a job but for its control arm, in the order persona, task, model, so that models progress side by side."""
    cells: list[Cell] = []
    for person, persona in enumerate(spec.personas):
        for task in spec.tasks if persona.traits else ():
            cells += _atomic_cells(spec, len(cells), person, task)
        if spec.gym is not None:
            for gym_task in spec.gym.tasks:
                cells += _gym_cells(spec, spec.gym, len(cells), person, gym_task)
    return tuple(cells)


def control_cells_of(spec: JobSpec, first: int) -> tuple[Cell, ...]:
    """The cells of a job's control arm, numbered from ``first`` on; none for a job without one.

    Of the atomic tasks one for each model and task. Of PersonaGym's one for each of its cells: each persona has its own questions.
    """
    if not spec.control:
        return ()
    atomic_cells = (
        AtomicCell(0, model, -1, NOBODY, task, spec.dimensions, spec.runs, items_for(task, spec.dimensions))
        for task in spec.tasks
        for model in range(len(spec.models))
    )
    gym_cells = (replace(cell, dimensions=()) for cell in gym(cells_of(spec)))
    return tuple(
        replace(cell, ordinal=ordinal, control=True)
        for ordinal, cell in enumerate((*atomic_cells, *gym_cells), first)
    )


def _atomic_cells(spec: JobSpec, first: int, person: int, task: AtomicTask) -> list[AtomicCell]:
    persona = spec.personas[person]
    by_id = {dimension.id: dimension for dimension in spec.dimensions}
    dimensions = tuple(by_id[trait.dimension] for trait in persona.traits)
    items = items_for(task, dimensions)
    return [
        AtomicCell(first + model, model, person, persona, task, dimensions, spec.runs, items)
        for model in range(len(spec.models))
    ]


def _gym_cells(spec: JobSpec, gym: GymSpec, first: int, person: int, task: GymTaskSpec) -> list[GymCell]:
    persona = spec.personas[person]
    judged = gym.judged_as(persona, task)
    dimensions = (gym.dimension,) if task.atomic else ()
    count, exact = gym.question_count(persona, task)
    runs = 0 if spec.provided else task.runs
    return [
        GymCell(first + model, model, person, judged, task, dimensions, runs, count, exact)
        for model in range(len(spec.models))
    ]


def atomic(cells: Iterable[Cell]) -> list[AtomicCell]:
    """The cells of atomic tasks among these."""
    return [cell for cell in cells if isinstance(cell, AtomicCell)]


def gym(cells: Iterable[Cell]) -> list[GymCell]:
    """The cells of PersonaGym tasks among these."""
    return [cell for cell in cells if isinstance(cell, GymCell)]


def shards_of(spec: JobSpec, cells: Sequence[Cell]) -> list[ShardPlan]:
    """Cuts the generating cells' runs into shards of about :data:`CALLS_PER_SHARD` calls."""
    return [
        ShardPlan(cell.ordinal, runs[0], runs[-1] + 1, len(runs) * responses_per_run(cell))
        for cell in cells
        for runs in _slices(range(cell.runs), _runs_per_shard(spec, cell))
    ]


def responses_per_run(cell: Cell) -> int:
    """Responses that a run of a cell has, as far as is known."""
    if isinstance(cell, AtomicCell):
        return len(cell.items)
    return cell.questions if isinstance(cell, GymCell) else 0


def shards_of_provided(
    spec: JobSpec, cells: Sequence[Cell], provided: Sequence[ProvidedResponse]
) -> list[ShardPlan]:
    """Cuts existing texts into shards; their runs may have gaps and unequal numbers of items."""
    runs: dict[int, dict[int, int]] = {}
    for response in provided:
        of_cell = runs.setdefault(response.cell, {})
        of_cell[response.run] = of_cell.get(response.run, 0) + 1
    return [
        ShardPlan(ordinal, some[0], some[-1] + 1, sum(of_cell[run] for run in some))
        for ordinal, of_cell in sorted(runs.items())
        for some in _slices(sorted(of_cell), _runs_per_shard(spec, cells[ordinal]))
    ]


def _runs_per_shard(spec: JobSpec, cell: Cell) -> int:
    units, judges = calls_for(cell.task.expected_units, spec.grouping), len(spec.asked_judges)
    if spec.order_check is not None:
        units *= 1 + len(ORDERS) * spec.order_check.share
    if isinstance(cell, AtomicCell):
        judgements = units * cell.verdicts_per_unit * judges
    else:
        judgements = judges * (1 + units * len(cell.dimensions))
    calls_per_run = responses_per_run(cell) * (1 + spec.checks_every_text + judgements)
    return max(1, round(CALLS_PER_SHARD / calls_per_run))


def _slices(runs: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (runs[first : first + size] for first in range(0, len(runs), size))


def estimate(spec: JobSpec, cells: Sequence[Cell]) -> list[StageEstimate]:
    """Calls and tokens of a generating job's atomic cells by stage and model, before anything is spent."""
    of_first = [cell for cell in atomic(cells) if cell.model == 0]  # every model has the same cells
    generation = _generation_estimates(spec, of_first)
    written = {
        task.id: share_written(spec.models, task.expected_output_tokens)
        for task in {cell.task.id: cell.task for cell in of_first}.values()
    }
    responses = [
        (
            cell,
            item,
            float(spec.runs * len(spec.models)),
            cell.task.expected_units * written[cell.task.id],
            0.0 if cell.control else None,  # checks are of sentences written as a persona
        )
        for cell in of_first
        for item in cell.items
    ]
    judging = [each for judge in spec.judges for each in _judging_estimate(spec, judge, responses)]
    return [*generation, *judging, *expected_refusal_checks(spec, generation)]


def estimate_provided(
    spec: JobSpec, cells: Sequence[Cell], units: Sequence[tuple[int, int, int, int]]
) -> list[StageEstimate]:
    """Calls and tokens of a job over existing texts.

    Args:
        spec: The job.
        cells: Its cells.
        units: (cell, run, item, number of sentences) of each text; exact, since the texts exist.
    """
    by_ordinal = {cell.ordinal: cell for cell in atomic(cells)}
    responses = [
        (
            by_ordinal[cell],
            by_ordinal[cell].items[item],
            1.0,
            float(count),
            share_checked(spec, cell, run, item, count),
        )
        for cell, run, item, count in units
    ]
    judges = [spec.judges[n] for n in spec.asked_judges]
    return [each for judge in judges for each in _judging_estimate(spec, judge, responses)]


def share_checked(spec: JobSpec, cell: int, run: int, item: int, sentences: int) -> float:
    """Share of an existing text's sentences that are judged again, or alone as well."""
    if spec.order_check is not None:
        return spec.order_check.drawn(cell, run, item, sentences) / max(1, sentences)
    return float(spec.grouping is not None and spec.grouping.checks(cell, run, item, sentences))


def _generation_estimates(spec: JobSpec, cells: Sequence[AtomicCell]) -> list[StageEstimate]:
    calls = sum(len(cell.items) for cell in cells) * spec.runs
    characters = sum(
        spec.iterations * len(cell.items) * _instruction_characters(spec, cell)
        + spec.runs * sum(len(user_prompt(cell.task, item)) for item in cell.items)
        for cell in cells
    )
    sent = round(characters / CHARACTERS_PER_TOKEN)
    replies = [(len(cell.items) * spec.runs, cell.task.expected_output_tokens) for cell in cells]
    return [
        StageEstimate(Stage.GENERATION, model, calls, Usage(sent, round(output)))
        for model in spec.models
        for output in [sum(count * bounded_output(model, tokens) for count, tokens in replies)]
    ]


def _instruction_characters(spec: JobSpec, cell: AtomicCell) -> int:
    return 0 if cell.control else sum(len(system_prompt(i, cell.persona)) for i in spec.instructions)


def _judging_estimate(
    spec: JobSpec, judge: Model, responses: Sequence[tuple[AtomicCell, Item, float, float, float | None]]
) -> list[StageEstimate]:
    total = JudgingSum(judge, spec)
    for cell, item, repetitions, units, checked in responses:
        for _, dimension in cell.traits_of(item):
            alone = scoring_prompt(cell.task, dimension, item, EXPECTED_UNIT.text)
            together = partial(_together, spec, cell, item, dimension)
            total.add(repetitions, units, alone, together, checked)
    return total.estimates()


def _together(
    spec: JobSpec, cell: AtomicCell, item: Item, dimension: Dimension, units: Sequence[Unit]
) -> str:
    if spec.grouping is None:
        raise ValueError("the job's sentences are judged one by one")
    return grouped_scoring_prompt(spec.grouping.words, cell.task, dimension, item, units)
