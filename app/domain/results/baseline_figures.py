"""Figures of baselines of one's own, for a job's to stand among."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.results.contract import CellResult
from app.domain.results.gate import HeldAgainst
from app.domain.results.personagym_results import PersonaScoreTotal

MOST_BESIDE = 20
"""Baselines whose figures are read for one report, the last named ones."""


@dataclass(frozen=True, slots=True)
class BaselineFigures:
    """What a baseline's job says of its model.

    Attributes:
        told: Which it is.
        simulated: Whether its figures are simulated.
        cells: Those of its model.
        score: Its PersonaScore over all personas, if it has one.
    """

    told: HeldAgainst
    simulated: bool
    cells: Sequence[CellResult]
    score: PersonaScoreTotal | None
