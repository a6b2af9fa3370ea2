"""Judges' agreement on sentences in the results' form, from scores that a test writes down."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.results.verdict_agreement import JointScores, VerdictAgreement, verdict_agreement
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.krippendorff import NO_SCORE


def joint(
    *units: Sequence[int | None],
    persona: str = "p",
    task: str = "essay",
    dimension: str = "E",
    scale: Scale | None = None,
) -> JointScores:
    """Units with each judge's score, ``None`` where there is none."""
    scale = scale or Scale()
    rows = [[NO_SCORE if score is None else score - scale.minimum for score in unit] for unit in units]
    return JointScores(
        persona, task, dimension, scale, np.array(rows, dtype=np.int64), np.ones(len(rows), dtype=np.int64)
    )


def agreed(*cells: JointScores, judges: Sequence[str] = ("a", "b")) -> tuple[VerdictAgreement, ...]:
    """The agreement, with intervals over the cells' personas."""
    return verdict_agreement(cells, judges, PersonaSample([cell.persona for cell in cells], 0))


def agreement_of(*cells: JointScores, judges: Sequence[str] = ("a", "b")) -> list[dict[str, Any]]:
    """The same as it stands in the results."""
    return [found.model_dump(mode="json", exclude_unset=True) for found in agreed(*cells, judges=judges)]
