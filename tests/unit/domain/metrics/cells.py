"""Cells for the metrics' tests, written as lists of scores."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.scores import UNKNOWN_INSTRUCTION, CellScores

PAPER = Scale()
Runs = Sequence[Sequence[Sequence[int]]]


def cell(
    runs: Runs,
    level: str = "high",
    *,
    scale: Scale = PAPER,
    instructions: Sequence[int] | None = None,
    excluded: Mapping[VerdictStatus, int] | None = None,
) -> CellScores:
    """A cell whose ``runs[r][k]`` are the scores of the k-th response of run r.

    The scale's not-applicable option may stand among the scores; it is counted as excluded.
    """
    if instructions is None:
        instructions = [UNKNOWN_INSTRUCTION] * len(runs)
    responses = [(run, scores) for run, texts in enumerate(runs) for scores in texts]
    grid = range(scale.minimum, scale.maximum + 1)
    filtered = sum(list(scores).count(scale.not_applicable) for _, scores in responses)
    return CellScores(
        scale=scale,
        level=scale.levels.index(level),
        runs=np.array([run for run, _ in responses], dtype=np.int64),
        instructions=np.array([instructions[run] for run, _ in responses], dtype=np.int64),
        histograms=np.array(
            [[list(scores).count(score) for score in grid] for _, scores in responses], dtype=np.int64
        ).reshape(len(responses), scale.size),
        excluded={VerdictStatus.NOT_APPLICABLE: filtered} if excluded is None else excluded,
    )
