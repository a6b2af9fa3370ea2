"""Results by the wording of the persona instruction (atomic paper, Table 12)."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.definition import Family
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import names
from app.domain.results.results import MeasuredCell
from app.domain.results.totals import mean_over

INSTRUCTION_METRICS = names(Family.SCORE, Family.RESPONSE, Family.ATOMIC)
"""The papers'."""
GROUPINGS = (("model",), ("model", "task"), ("model", "level"))


class InstructionTotal(Answer):
    """Unweighted means over the cells of one group, of their runs under one instruction."""

    by: list[str] = Field(
        description="Names of the keys that make the group.", examples=[["model"], ["model", "task"]]
    )
    model: str
    task: str | None = None
    level: str | None = None
    cells: int
    metrics: dict[str, Metric] = Field(
        description=f"{', '.join(f'`{name}`' for name in INSTRUCTION_METRICS)}. Intervals are for personas like these."
    )


class OfInstruction(Answer):
    """What the runs under one persona instruction give."""

    instruction: int = Field(description="Its number, from 0.")
    words: str | None = Field(
        description="What it says, `{persona}` standing for the persona; `null` for existing texts."
    )
    totals: list[InstructionTotal]


class ByInstruction(Answer):
    """A job's results by the wording of the persona instruction."""

    job: str
    simulated: bool
    instructions: list[OfInstruction] = Field(description="Those that are known of some runs.")


def instruction_totals(cells: Sequence[MeasuredCell]) -> list[InstructionTotal]:
    """The totals of cells of which only the runs under one instruction were measured."""
    return [total for by in GROUPINGS for total in _grouped(cells, by)]


def _grouped(cells: Sequence[MeasuredCell], by: tuple[str, ...]) -> Iterator[InstructionTotal]:
    def keys_of(cell: MeasuredCell) -> tuple[str, ...]:
        return tuple(getattr(cell, name) for name in by)

    for keys, group in groupby(sorted(cells, key=keys_of), key=keys_of):
        own = list(group)
        yield InstructionTotal(
            by=list(by),
            **dict(zip(by, keys, strict=True)),
            cells=len(own),
            metrics={name: mean_over(name, own) for name in INSTRUCTION_METRICS},
        )
