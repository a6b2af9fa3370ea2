"""The results by persona instruction as the report shows them: a table for each metric, models by instructions."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.metrics.definition import Family
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import names
from app.domain.results.by_instruction import ByInstruction

SHOWN = names(Family.ATOMIC)


@dataclass(frozen=True, slots=True)
class InstructionTable:
    """One metric of every model under every instruction.

    Attributes:
        metric: Its name.
        rows: For each model one figure an instruction; ``None`` where it has no runs under it.
    """

    metric: str
    rows: Sequence[tuple[str, Sequence[Metric | None]]]


def instruction_tables(found: ByInstruction | None, models: Sequence[str]) -> list[InstructionTable]:
    """The tables, with the models in this order; none where fewer than two instructions are known."""
    if found is None or len(found.instructions) <= 1:
        return []
    totals = {
        (total.model, number): total
        for number, each in enumerate(found.instructions)
        for total in each.totals
        if total.by == ["model"]
    }

    def figures(model: str, metric: str) -> list[Metric | None]:
        own = [totals.get((model, number)) for number in range(len(found.instructions))]
        return [None if total is None else total.metrics[metric] for total in own]

    return [InstructionTable(name, [(model, figures(model, name)) for model in models]) for name in SHOWN]
