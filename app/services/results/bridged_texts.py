"""From the rows of two judges to a bridge; no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from app.db.jobs.jobs import JobRow
from app.db.results.bridge_queries import Judge, SameTrait
from app.domain.jobs.plan import AtomicCell, gym
from app.domain.jobs.run_pairs import Names, run_pairs
from app.domain.jobs.text_source import TextSource
from app.domain.metrics.metric import IntArray
from app.domain.personagym.task import GRADE_SCALE
from app.domain.results.bridge import Bridge, BridgeSide, Design
from app.domain.results.bridge_agreement import UNREADABLE, Judged, agreements, graded_agreement
from app.domain.results.bridge_words import (
    NOT_RANDOM,
    PART,
    SIMULATED,
    decided,
    doubts,
    recommendation,
    without_doubted,
)
from app.domain.results.bridged_totals import (
    PAIRS,
    RC_NOT_BRIDGED,
    TEXTS,
    bridged_grades,
    bridged_sentences,
    several_runs,
)
from app.domain.results.judge_sanity import CHANCE
from app.domain.results.twice_judged import BoolArray, JudgedCell, TwiceJudged, distinct
from app.domain.results.warnings import ResultWarning
from app.services.job_context import JobContext

_PLACE, _TRAITS = 2**16, 2**10
"""More than runs or items can be, and more than traits."""


@dataclass(frozen=True)
class BridgedSide:
    """A judge of a job.

    Attributes:
        job: The job.
        context: Its specification and cells.
        judge: The judge's index among the job's.
    """

    job: JobRow
    context: JobContext
    judge: int

    @property
    def named(self) -> Judge:
        """As queries name it."""
        return Judge(self.job.id, self.judge)

    @property
    def shown(self) -> BridgeSide:
        """As answers name it."""
        judge = self.context.spec.judges[self.judge]
        return BridgeSide(job=self.job.id, judge=judge.label, imported=judge.imported is not None)

    @property
    def source(self) -> TextSource | None:
        """Where its texts were copied from."""
        return self.context.spec.source

    def name(self, ordinal: int) -> Names:
        """What tells a cell from others, in every job."""
        cell = self.context.cell(ordinal)
        return self.context.spec.models[cell.model].label, cell.persona.id, cell.task.id

    @cached_property
    def traits(self) -> Mapping[tuple[int, int], Judged]:
        """What is judged in its cells, by the cell's ordinal and the trait."""
        return {
            (cell.ordinal, n): Judged(dimension.id, cell.persona.traits[n].level, dimension.scale)
            for cell in self.context.cells
            for n, dimension in enumerate(cell.dimensions)
        }

    @cached_property
    def kinds(self) -> list[Judged]:
        """The different dimensions and levels."""
        return list(dict.fromkeys(self.traits.values()))

    def warnings_among(self, other: "BridgedSide") -> Iterator[ResultWarning]:
        """The job's warnings about this judge, on what both jobs measure.

        Agreement with the job's other judges is left out: one of those may be the one that fails.
        """
        dimensions = {None} | {judged.dimension for judged in other.kinds}
        for each in map(ResultWarning.model_validate, self.job.warnings or ()):
            if self.shown.judge in each.judges and each.code != CHANCE and each.dimension in dimensions:
                yield each

    def source_of(self, new: "BridgedSide") -> TextSource | None:
        """How the new job's texts were chosen, if it was among this one's, or among those that this one judges all of."""
        chosen, own = new.source, self.source
        if chosen is None:
            return None
        ours = {self.job.id} | (
            {own.job} if own is not None and own.sample is None and not own.filter else set()
        )
        return chosen if chosen.job in ours else None

    def _among(self, new: "BridgedSide") -> set[int]:
        """The cells among whose texts the new judge's were chosen."""
        source = self.source_of(new)
        if source is not None:
            named = [set(source.filter.get(field, ())) for field in ("models", "personas", "tasks")]
        else:
            names = [new.name(cell.ordinal) for cell in new.context.cells]
            named = [set(column) for column in zip(*names, strict=True)]
        return {
            cell.ordinal
            for cell in self.context.cells
            if all(
                not wanted or name in wanted
                for name, wanted in zip(self.name(cell.ordinal), named, strict=True)
            )
        }

    def is_part_for(self, new: "BridgedSide") -> bool:
        """Whether the new judge's texts were chosen among some of this job's only."""
        source = self.source_of(new)
        named = source is not None and (source.filter.get("runs") or source.filter.get("items"))
        return bool(named) or len(self._among(new)) < len(self.context.cells)

    def traits_among(self, new: "BridgedSide") -> list[tuple[int, int]]:
        """What is judged in the cells among whose texts the new judge's were chosen."""
        cells = self._among(new)
        return [place for place in self.traits if place[0] in cells]

    def graded_among(self, new: "BridgedSide") -> list[int]:
        """Those of these cells whose texts are graded."""
        cells = self._among(new)
        return [cell.ordinal for cell in gym(self.context.cells) if cell.ordinal in cells]


class Read(NamedTuple):
    """What the database has of two judges; columns as in :mod:`app.db.results.bridge_queries`.

    Attributes:
        same: What both jobs measure.
        texts: Where both have the same text.
        answered: Answered responses of the new job.
        by_old: The old judge's scores of all texts.
        by_new: The new one's.
        said: What both said of the same sentences.
        old_grades: The old judge's grades of all texts.
        new_grades: The new one's.
    """

    same: Sequence[SameTrait]
    texts: IntArray
    answered: int
    by_old: IntArray
    by_new: IntArray
    said: IntArray
    old_grades: IntArray
    new_grades: IntArray


def bridge_of(old: BridgedSide, new: BridgedSide, read: Read, within: float) -> Bridge:
    """The answer; CPU only.

    Args:
        old: The old judge.
        new: The new one.
        read: What they said.
        within: The margin, as a share of a figure's range.
    """
    source = old.source_of(new)
    sample = None if source is None else source.sample
    in_pairs = sample is not None and sample.get("by") == "run_pairs"
    seed = sample["seed"] if sample is not None and in_pairs else None
    sentences, grades = _sentences(old, new, read, seed), _grades(old, new, read, seed)
    every = bool(sentences.anchor.all() and grades.anchor.all())
    design: Design = "all" if every else "not_random" if sample is None else "random"
    drawn = PAIRS if in_pairs else TEXTS
    figures = [
        *(bridged_sentences(sentences, within, drawn) if len(sentences.cell) else []),
        *(bridged_grades(grades, within, drawn) if len(grades.cell) else []),
    ]
    seed_of_new = new.context.spec.seed
    agreement = agreements(old.kinds, read.said, seed_of_new)
    graded = graded_agreement(_both_graded(read), seed_of_new)
    found = doubts([*old.warnings_among(new), *new.warnings_among(old)], agreement, graded)
    figures = without_doubted(figures, found)
    lacks_rc = several_runs(sentences) and all(each.metric != "rc_atom" for each in figures)
    simulated = old.job.simulated or new.job.simulated
    return Bridge(
        old=old.shown,
        new=new.shown,
        texts=len(np.unique(np.concatenate([sentences.text, grades.text]))),
        anchors=len(read.texts),
        unpaired=read.answered - len(read.texts),
        design=design,
        within=within,
        agreement=agreement,
        graded=graded,
        figures=figures,
        not_bridged={"rc_atom": RC_NOT_BRIDGED} if lacks_rc else {},
        interchangeable=decided(figures),
        recommendation=recommendation(figures, within, design, found),
        notes=list(dict.fromkeys(f"{each.code}: {each.message}." for each in found))
        + [
            note
            for note, holds in (
                (SIMULATED, simulated),
                (NOT_RANDOM, design == "not_random"),
                (PART, old.is_part_for(new)),
            )
            if holds
        ],
        simulated=simulated,
    )


def _sentences(old: BridgedSide, new: BridgedSide, read: Read, seed: int | None) -> TwiceJudged:
    """Both judges' scores of the sentences."""
    of_old = {(each.new_cell, each.new_trait): (each.old_cell, each.old_trait) for each in read.same}
    known = {(each.old_cell, each.old_trait) for each in read.same}
    places = _in_old_places(read.by_new[:, [0, 2, 3]], read.texts)
    traits = np.array(
        [of_old[cell, trait] for cell, trait in read.by_new[:, :2].tolist()], dtype=np.int64
    ).reshape(-1, 2)
    by_new = np.column_stack([traits, places[:, 1:], read.by_new[:, 4:]])[places[:, 0] >= 0]
    return _twice_judged(old, _as_chosen(old, new, read.by_old, 2), by_new, _Places(read.texts, known, seed))


def _grades(old: BridgedSide, new: BridgedSide, read: Read, seed: int | None) -> TwiceJudged:
    """Grades as if each were the score of a text's only sentence, on the trait −1."""
    by_old, by_new = (
        each[each[:, 3] != UNREADABLE] for each in (_as_chosen(old, new, read.old_grades, 1), read.new_grades)
    )
    places = _in_old_places(by_new[:, :3], read.texts)
    found = [
        np.column_stack([cell, np.full_like(cell, -1), run, item, grade, np.ones_like(cell)])
        for cell, run, item, grade in (
            by_old.T,
            np.column_stack([places, by_new[:, 3]])[places[:, 0] >= 0].T,
        )
    ]
    known = {(cell, -1) for cell in np.unique(read.texts[:, 0]).tolist()}
    return _twice_judged(old, found[0], found[1], _Places(read.texts, known, seed))


class _Places(NamedTuple):
    """Where the anchors are.

    Attributes:
        texts: As in :class:`Read`.
        known: What the new judge judged too, by the cell's ordinal in the old job and the trait.
        seed: Of the sample of pairs of runs that they are; ``None`` where texts were drawn one by one.
    """

    texts: IntArray
    known: set[tuple[int, int]]
    seed: int | None


def _twice_judged(old: BridgedSide, by_old: IntArray, by_new: IntArray, places: _Places) -> TwiceJudged:
    """Both judges' counts by text and trait.

    Args:
        old: The old judge.
        by_old: Shape (n, 6): cell, trait, run, item, score, number of sentences.
        by_new: The new judge's, at the same places.
        places: Where the anchors are.
    """
    first, of_row = distinct(by_old[:, :4])
    rows = by_old[first, :4]
    first, cell = distinct(rows[:, :2])
    traits = rows[first, :2]
    cells = [_judged_cell(old, ordinal, trait) for ordinal, trait in traits.tolist()]
    key, text = _key(*rows.T), _key(rows[:, 0], 0, *rows[:, 2:].T)
    at = np.searchsorted(key, _key(*by_new[:, :4].T))
    there = np.isin(_key(*by_new[:, :4].T), key)
    minimum = np.array([each.scale.minimum for each in cells], dtype=np.int64)
    size = max((each.scale.size for each in cells), default=1)
    counts = np.zeros((2, len(rows), size), dtype=np.int64)
    for side, (place, said) in enumerate(((of_row, by_old), (at[there], by_new[there]))):
        np.add.at(counts[side], (place, said[:, 4] - minimum[cell[place]]), said[:, 5])
    known = np.array([trait in places.known for trait in map(tuple, traits.tolist())], dtype=np.bool_)
    same = _key(places.texts[:, 0], 0, places.texts[:, 2], places.texts[:, 3])
    anchor = np.isin(text, same) & known[cell]
    draw = text if places.seed is None else _pairs(old, rows, anchor, places.seed)
    return TwiceJudged(cells, cell, text, rows[:, 2], rows[:, 3], draw, anchor, *counts)


def _judged_cell(old: BridgedSide, ordinal: int, trait: int) -> JudgedCell:
    if trait < 0:
        return JudgedCell(*old.name(ordinal), "", 0, GRADE_SCALE)
    judged = old.traits[ordinal, trait]
    level = judged.scale.levels.index(judged.level)
    return JudgedCell(*old.name(ordinal), judged.dimension, level, judged.scale)


def _pairs(old: BridgedSide, rows: IntArray, anchor: BoolArray, seed: int) -> IntArray:
    """The pair of runs to which each row belongs: anchors' among themselves, as they were drawn, and the others' likewise."""
    draw = np.empty(len(rows), dtype=np.int64)
    for ordinal in np.unique(rows[:, 0]).tolist():
        own = np.flatnonzero(rows[:, 0] == ordinal)
        runs = rows[own, 2]
        drawn = np.isin(runs, runs[anchor[own]])
        for kind in (0, 1):
            pair_of = run_pairs(seed, old.name(ordinal), set(runs[drawn == kind].tolist()))
            pairs = np.array([pair_of[run] for run in runs[drawn == kind].tolist()], dtype=np.int64)
            draw[own[drawn == kind]] = _key(ordinal, kind, 0, 0) + pairs
    return draw


def _key(cell: IntArray | int, trait: IntArray | int, run: IntArray | int, item: IntArray | int) -> IntArray:
    """A number for each place, in the places' order."""
    return np.asarray(((cell * _TRAITS + trait + 1) * _PLACE + run) * _PLACE + item)


def _in_old_places(places: IntArray, texts: IntArray) -> IntArray:
    """Cell, run and item in the old job of places in the new one, −1 of those that are no anchors.

    Args:
        places: Shape (n, 3): cell, run and item.
        texts: As in :class:`Read`.
    """
    of_new = _key(texts[:, 1], 0, texts[:, 2], texts[:, 4])
    order = np.argsort(of_new)
    wanted = _key(places[:, 0], 0, *places[:, 1:].T)
    at = np.minimum(np.searchsorted(of_new[order], wanted), len(order) - 1)
    found = texts[order[at]][:, [0, 2, 3]]
    found[of_new[order[at]] != wanted] = -1
    return found


def _as_chosen(old: BridgedSide, new: BridgedSide, rows: IntArray, run: int) -> IntArray:
    """Those of the runs and items among which the anchors were drawn; the column ``run`` has the run, the next one the item."""
    source = old.source_of(new)
    if source is None:
        return rows
    kept = np.ones(len(rows), dtype=np.bool_)
    if runs := source.filter.get("runs"):
        kept &= np.isin(rows[:, run], runs)
    if items := source.filter.get("items"):
        named = {
            (cell.ordinal, item.index)
            for cell in old.context.cells
            if isinstance(cell, AtomicCell)
            for item in cell.items
            if item.id in items
        }
        kept &= np.array(
            [place in named for place in map(tuple, rows[:, [0, run + 1]].tolist())], dtype=np.bool_
        )
    return rows[kept]


def _both_graded(read: Read) -> IntArray:
    """The new and the old judge's grade of each answer that both have judged."""
    places = _in_old_places(read.new_grades[:, :3], read.texts)
    by_old = dict(
        zip(
            _key(read.old_grades[:, 0], 0, *read.old_grades[:, 1:3].T).tolist(),
            read.old_grades[:, 3].tolist(),
            strict=True,
        )
    )
    pairs = [
        (new, by_old[key])
        for key, new in zip(
            _key(places[:, 0], 0, *places[:, 1:].T).tolist(), read.new_grades[:, 3].tolist(), strict=True
        )
        if key in by_old
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
