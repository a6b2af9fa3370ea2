"""Which share of the planned verdicts the figures are of."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from pydantic import ConfigDict, Field

from app.domain.contract import Answer

MINIMUM_COVERAGE = 0.95
"""Share of what was planned below which no conclusion is drawn, unless somebody asks for another."""
COMPOSITE = "acc_atom_composite"
VERDICTS, GRADES = "verdicts", "grades"


class Coverage(Answer):
    """The share of planned verdicts (grades) that values are based on."""

    model_config = ConfigDict(frozen=True)

    share: float | None = Field(
        description="`counted` ÷ `planned`; `null` if nothing is planned.", examples=[0.98]
    )
    counted: int = Field(
        description="`scored` verdicts, and `not_applicable` ones in responses with a scored sentence; for "
        "grades, the scored ones."
    )
    refused: int = Field(description="Those missing because the model refused.")
    planned: int = Field(
        description="A response without judged sentences counts as many as the average of its model and task."
    )

    @classmethod
    def of(cls, counted: int, refused: int, planned: int) -> Self:
        """With its share."""
        share = counted / planned if planned else None
        return cls(share=share, counted=counted, refused=refused, planned=planned)

    @classmethod
    def sum(cls, parts: Iterable["Coverage"]) -> Self:
        """Several cells' verdicts, added up."""
        found = list(parts)
        return cls.of(
            sum(part.counted for part in found),
            sum(part.refused for part in found),
            sum(part.planned for part in found),
        )


NOTHING_PLANNED = Coverage.of(0, 0, 0)


@dataclass(frozen=True, slots=True)
class JudgedCell:
    """What is known of one cell's verdicts on one dimension; of two judges everything counts twice.

    Attributes:
        group: Model and task.
        planned: Responses.
        refused: Of them refusals.
        judged: Of them those with judged sentences.
        verdicts: Planned on these sentences: those that are there, of any status, and those that are not.
        counted: Of those verdicts those that the figures are of.
    """

    group: tuple[str, str]
    planned: int
    refused: int
    judged: int
    verdicts: int
    counted: int


def coverages(cells: Sequence[JudgedCell]) -> list[Coverage]:
    """The cells' coverage, in their order.

    How many sentences a response would have had that was refused, or never came, nobody knows: it is taken to have as many
    as the judged ones of its model in the task have on average, or else those of all models, or one.
    """
    lengths = _mean_lengths(cells, lambda cell: cell.group)
    of_task = _mean_lengths(cells, lambda cell: ("", cell.group[1]))
    found = []
    for cell in cells:
        length = lengths.get(cell.group) or of_task.get(("", cell.group[1])) or Fraction(1)
        refused = round(cell.refused * length)
        absent = round(max(0, cell.planned - cell.refused - cell.judged) * length)
        found.append(Coverage.of(cell.counted, refused, cell.verdicts + refused + absent))
    return found


def _mean_lengths(
    cells: Sequence[JudgedCell], group: Callable[[JudgedCell], tuple[str, str]]
) -> dict[tuple[str, str], Fraction]:
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for cell in cells:
        added = sums[group(cell)]
        added[0] += cell.verdicts
        added[1] += cell.judged
    return {key: Fraction(verdicts, judged) for key, (verdicts, judged) in sums.items() if judged}
