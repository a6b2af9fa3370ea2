"""From a job's specification to cells, runs, items and shards, and what they will take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.domain.dimension import Dimension
from app.domain.model import Model, Stage, Usage
from app.domain.persona import Persona
from app.domain.prompts import scoring_prompt, system_prompt, user_prompt
from app.domain.spec import JobSpec, ProvidedResponse
from app.domain.task import AtomicTask, Item, items_for

CALLS_PER_SHARD = 300
"""Planned calls of a shard: enough that claiming costs nothing per call, few enough that losing a worker is cheap."""

CHARACTERS_PER_TOKEN = 4.0
"""English prose on common tokenizers; used for estimates only."""

VERDICT_OUTPUT_TOKENS = 1
EXPECTED_UNIT_CHARACTERS = 95
"""Typical sentence (the paper's 200–300 word essays have about 15 sentences); used for estimates only."""


@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of one model × persona × task. Each of the persona's traits becomes a cell of the results.

    Attributes:
        ordinal: Position among the job's cells, from 0.
        model: Index of the model in the specification.
        persona: The persona.
        task: The task.
        dimensions: The dimensions of the persona's traits, in the traits' order.
        items: What is asked in each run.
    """

    ordinal: int
    model: int
    persona: Persona
    task: AtomicTask
    dimensions: tuple[Dimension, ...]
    items: tuple[Item, ...]

    def traits_of(self, item: Item) -> Iterator[tuple[int, Dimension]]:
        """The traits (by index) on which the item's responses are judged, with their dimensions."""
        return ((n, d) for n, d in enumerate(self.dimensions) if d.id in item.dimensions)

    @property
    def verdicts_per_unit(self) -> float:
        """Traits on which a unit is judged, as a mean over the items."""
        return sum(len(item.dimensions) for item in self.items) / len(self.items)


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """A slice of a cell's runs, ``run_start <= run < run_stop``, done by one worker at a time."""

    cell: int
    run_start: int
    run_stop: int
    responses: int


def cells_of(spec: JobSpec) -> tuple[Cell, ...]:
    """Every cell of a job, in the order persona, task, model, so that models progress side by side."""
    cells: list[Cell] = []
    by_id = {dimension.id: dimension for dimension in spec.dimensions}
    for persona in spec.personas:
        dimensions = tuple(by_id[trait.dimension] for trait in persona.traits)
        for task in spec.tasks:
            items = items_for(task, dimensions)
            for model in range(len(spec.models)):
                cells.append(Cell(len(cells), model, persona, task, dimensions, items))
    return tuple(cells)


def shards_of(spec: JobSpec, cells: Sequence[Cell]) -> list[ShardPlan]:
    """Cuts the generating cells' runs into shards of about :data:`CALLS_PER_SHARD` calls."""
    return [
        ShardPlan(cell.ordinal, start, stop, (stop - start) * len(cell.items))
        for cell in cells
        for start, stop in _slices(range(spec.runs), _runs_per_shard(spec, cell))
    ]


def shards_of_provided(
    spec: JobSpec, cells: Sequence[Cell], provided: Sequence[ProvidedResponse]
) -> list[ShardPlan]:
    """Cuts existing texts into shards; their runs may have gaps and unequal numbers of items."""
    runs: dict[int, dict[int, int]] = {}
    for response in provided:
        of_cell = runs.setdefault(response.cell, {})
        of_cell[response.run] = of_cell.get(response.run, 0) + 1
    shards: list[ShardPlan] = []
    for ordinal in sorted(runs):
        of_cell = runs[ordinal]
        for start, stop in _slices(sorted(of_cell), _runs_per_shard(spec, cells[ordinal])):
            shards.append(
                ShardPlan(ordinal, start, stop, sum(n for run, n in of_cell.items() if start <= run < stop))
            )
    return shards


def _runs_per_shard(spec: JobSpec, cell: Cell) -> int:
    units = cell.task.expected_units
    calls_per_run = len(cell.items) * (1 + units * cell.verdicts_per_unit * len(spec.judges))
    return max(1, round(CALLS_PER_SHARD / calls_per_run))


def _slices(runs: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, len(runs), size):
        chunk = runs[first : first + size]
        yield chunk[0], chunk[-1] + 1


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """What a stage is expected to take on one model.

    Attributes:
        stage: Generation or judging.
        model: The model.
        calls: Number of calls; exact for generation, estimated for judging.
        usage: Estimated tokens.
    """

    stage: Stage
    model: Model
    calls: int
    usage: Usage


def estimate(spec: JobSpec, cells: Sequence[Cell]) -> list[StageEstimate]:
    """Calls and tokens of a generating job by stage and model, before anything is spent."""
    generation = [
        _generation_estimate(spec, model, [c for c in cells if c.model == n])
        for n, model in enumerate(spec.models)
    ]
    responses = [
        (cell, item, float(spec.runs), cell.task.expected_units) for cell in cells for item in cell.items
    ]
    return generation + [_judging_estimate(judge, responses) for judge in spec.judges]


def estimate_provided(
    spec: JobSpec, cells: Sequence[Cell], units: Sequence[tuple[int, int, int]]
) -> list[StageEstimate]:
    """Calls and tokens of a job over existing texts.

    Args:
        spec: The job.
        cells: Its cells.
        units: (cell, item, number of sentences) of each text; exact, since the texts exist.
    """
    responses = [(cells[cell], cells[cell].items[item], 1.0, float(count)) for cell, item, count in units]
    return [_judging_estimate(judge, responses) for judge in spec.judges]


def _generation_estimate(spec: JobSpec, model: Model, cells: Sequence[Cell]) -> StageEstimate:
    calls = sum(len(cell.items) for cell in cells) * spec.runs
    characters = sum(
        spec.iterations
        * len(cell.items)
        * sum(len(system_prompt(i, cell.persona)) for i in spec.instructions)
        + spec.runs * sum(len(user_prompt(cell.task, item)) for item in cell.items)
        for cell in cells
    )
    output = sum(len(cell.items) * spec.runs * cell.task.expected_output_tokens for cell in cells)
    return StageEstimate(
        Stage.GENERATION, model, calls, Usage(round(characters / CHARACTERS_PER_TOKEN), output)
    )


def _judging_estimate(judge: Model, responses: Sequence[tuple[Cell, Item, float, float]]) -> StageEstimate:
    unit = "x" * EXPECTED_UNIT_CHARACTERS
    calls = characters = 0.0
    for cell, item, repetitions, units in responses:
        for _, dimension in cell.traits_of(item):
            calls += repetitions * units
            prompt = len(scoring_prompt(cell.task, dimension, item, unit))
            characters += repetitions * units * prompt
    usage = Usage(round(characters / CHARACTERS_PER_TOKEN), round(calls * VERDICT_OUTPUT_TOKENS))
    return StageEstimate(Stage.JUDGING, judge, round(calls), usage)
