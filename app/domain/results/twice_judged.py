"""Texts that an old judge has scored, and a new one some of them, as arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.metrics.rc_atom import rc_atom
from app.domain.metrics.registry import BY_NAME
from app.domain.metrics.scores import UNKNOWN_INSTRUCTION, CellScores

BoolArray = npt.NDArray[np.bool_]


class JudgedCell(NamedTuple):
    """Texts of one model, persona and task, on one dimension, or graded as a whole.

    Attributes:
        model: Their writer's label.
        persona: The persona's id.
        task: The task's id.
        dimension: The dimension's id; empty of grades.
        level: Index of the persona's level on it; 0 of grades.
        scale: Of the scores.
    """

    model: str
    persona: str
    task: str
    dimension: str
    level: int
    scale: Scale


@dataclass(frozen=True, slots=True, eq=False)
class TwiceJudged:
    """Texts in rows, one for each dimension on which a text is judged, sorted by cell.

    Attributes:
        cells: What they are of.
        cell: Shape (n,): index among ``cells``.
        text: Shape (n,): numbers the responses, from 0.
        run: Shape (n,): the run.
        item: Shape (n,): which of the cell's items it answers.
        draw: Shape (n,): numbers what was drawn at once, from 0: the response itself, or a pair of runs.
        anchor: Shape (n,): whether the new judge was given it.
        old: Shape (n, k): how many of its sentences got each score from the old judge, lowest first.
        new: Shape (n, k): from the new one.
    """

    cells: Sequence[JudgedCell]
    cell: IntArray
    text: IntArray
    run: IntArray
    item: IntArray
    draw: IntArray
    anchor: BoolArray
    old: IntArray
    new: IntArray

    def where(self, kept: BoolArray | slice) -> Self:
        """Some of the rows."""
        columns = {
            field.name: getattr(self, field.name)[kept] for field in fields(self) if field.name != "cells"
        }
        return type(self)(self.cells, **columns)

    def by_cell(self) -> Iterator[tuple[JudgedCell, slice]]:
        """Where each cell's rows are."""
        edges = np.flatnonzero(np.diff(self.cell, prepend=-1, append=-1)).tolist()
        for start, stop in pairwise(edges):
            yield self.cells[self.cell[start]], slice(start, stop)

    def figures(self, metric: str, histograms: IntArray) -> FloatArray:
        """A metric of each row's text alone, NaN where it has none.

        Args:
            metric: One that is a mean over runs.
            histograms: By a judge.
        """
        by_run = BY_NAME[metric].by_run
        assert by_run is not None  # noqa: S101 - else it is no mean
        found = np.full(len(self.cell), np.nan)
        for cell, place in self.by_cell():
            own = histograms[place]
            values, runs = by_run(_scores(cell, np.arange(len(own)), own))
            found[place][runs] = values
        return found


def distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Where each different row is first, in the rows' order, and of each row which of these it is.

    As ``numpy.unique`` by ``axis``, which compares rows under Python's lock: of some hundred thousand, no other request is answered
    for a second.

    Args:
        rows: Shape (n, k).
    """
    order = np.lexsort(rows.T[::-1])
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    return order[new], place


def consistency(cell: JudgedCell, runs: IntArray, histograms: IntArray) -> float:
    """RC_atom of these responses' runs, NaN where fewer than two have a score."""
    value = rc_atom(_scores(cell, runs, histograms)).overall.value
    return np.nan if value is None else value


def _scores(cell: JudgedCell, runs: IntArray, histograms: IntArray) -> CellScores:
    instructions = np.full(len(runs), UNKNOWN_INSTRUCTION)
    return CellScores(cell.scale, cell.level, runs, instructions, histograms[:, : cell.scale.size], {})
