"""A new judge with a known shift: how often the bridge's intervals hold what it would have given all texts.

``python -m benchmarks.inference.bridge [repetitions]``. In each repetition new anchors are drawn of the same texts, by the product's
own sampling, and bridged by its own figures; the truth is the new judge's total of all texts.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.instruments.persona import Persona, Trait
from app.domain.jobs.run_pairs import run_pairs
from app.domain.jobs.source_request import DrawnBy, SampleIn
from app.domain.jobs.stored_texts import drawn
from app.domain.jobs.text_source import StoredText
from app.domain.metrics.metric import IntArray
from app.domain.results.bridge import BridgedFigure
from app.domain.results.bridged_totals import PAIRS, TEXTS, bridged_grades, bridged_sentences
from app.domain.results.twice_judged import JudgedCell, TwiceJudged

SCALE = Scale()
GYM_TASKS = ("action", "justification", "habits", "consistency", "toxicity")
PERSONAS, MODELS, RUNS = 9, 3, 10
QUESTIONS = 6
WITHIN = 0.05
WIDTHS = {"mean": 4.0, "persona_score": 4.0, "rc_atom": 2.0}


@dataclass(frozen=True, slots=True)
class Design:
    """How the new judge differs from the old one, and how many anchors there are.

    Attributes:
        anchors: How many texts both judge.
        up: How likely it gives a point more than the old one, by model; of a text all sentences or none where ``whole``.
        down: How likely a point less.
        whole: Whether it is a whole text that it judges otherwise.
        silent: How likely it finds that a sentence does not apply.
        by: What is drawn.
        graded: Whether texts are PersonaGym's answers, which get one grade each.
        tasks: Responses of a run and sentences of each, by task.
    """

    anchors: int
    up: tuple[float, ...] = (0.15,) * MODELS
    down: float = 0.03
    whole: bool = False
    silent: float = 0.0
    by: DrawnBy = "responses"
    graded: bool = False
    tasks: Mapping[str, tuple[int, int]] = field(
        default_factory=lambda: {"questionnaire": (1, 6), "essay": (1, 15), "social_media_post": (1, 22)}
    )


_SHIFTS: Mapping[str, Mapping[str, Any]] = {
    "the same judge but for noise": {"up": (0.05,) * MODELS, "down": 0.05},
    "shifted for one model": {"up": (0.4, 0.1, 0.0)},
    "whole texts judged otherwise": {"whole": True},
    "a third of the sentences not applicable": {"silent": 0.33},
    "a point more in 1 % of sentences": {"up": (0.01,) * MODELS, "down": 0.0},
}
_SEVERAL = {"questionnaire": (4, 6), "essay": (1, 15), "social_media_post": (2, 12)}
DESIGNS: Mapping[str, Design] = {
    "100 anchors": Design(100),
    "200 anchors": Design(200),
    "400 anchors": Design(400),
    **{name: replace(Design(200), **changes) for name, changes in _SHIFTS.items()},
    **{f"{n} anchors in pairs": Design(n, by="run_pairs") for n in (100, 200, 400)},
    **{
        f"in pairs, {name}": replace(Design(200, by="run_pairs"), **changes)
        for name, changes in _SHIFTS.items()
    },
    "in pairs, several responses a run": Design(400, by="run_pairs", tasks=_SEVERAL),
    **{f"{n} graded anchors": Design(n, graded=True) for n in (100, 200, 400)},
    "graded, shifted for one model": Design(200, graded=True, up=(0.4, 0.1, 0.0)),
    "graded, the same judge but for noise": Design(200, graded=True, up=(0.05,) * MODELS, down=0.05),
}


class Texts:
    """Texts that an old judge has judged, and what the new one would give each.

    Args:
        design: How they differ.
        seed: Of the judges' scores.
    """

    def __init__(self, design: Design, seed: int) -> None:
        self.design = design
        self.chance = np.random.default_rng(seed)
        self.personas = [
            Persona(f"{level} {n}", "", (Trait("E", level),))
            for level in SCALE.levels
            for n in range(PERSONAS // 3)
        ]
        self.stored: list[StoredText] = []
        self.cells: list[JudgedCell] = []
        self._rows: list[tuple[int, int, int, IntArray, IntArray]] = []
        shape = dict.fromkeys(GYM_TASKS, (QUESTIONS, 1)) if design.graded else design.tasks
        for persona in self.personas:
            for task, (items, sentences) in shape.items():
                for model in range(MODELS):
                    self._add(persona, task, items, sentences, model)
        self.judged = self._judged()

    def _add(self, persona: Persona, task: str, items: int, sentences: int, model: int) -> None:
        level = persona.traits[0].level
        number = len(self.cells)
        dimension = "" if self.design.graded else "E"
        self.cells.append(
            JudgedCell(f"m{model}", persona.id, task, dimension, SCALE.levels.index(level), SCALE)
        )
        centre = {"low": 1.8, "neutral": 3.0, "high": 4.2}[level] + self.chance.normal(0, 0.3)
        for run in range(1 if self.design.graded else RUNS):
            of_run = centre + self.chance.normal(0, 0.3)
            for item in range(items):
                text = of_run + self.chance.normal(0, 0.4)
                old = np.clip(np.rint(self.chance.normal(text, 0.8, sentences)), 1, 5).astype(np.int64)
                place = number, run, item
                self.stored.append(
                    StoredText(f"m{model}", persona.id, task, str(item), run, 0, "answered", sentences, place)
                )
                self._rows.append((*place, old, self._by_new(old, model)))

    def _by_new(self, old: IntArray, model: int) -> IntArray:
        design = self.design
        size = 1 if design.whole else len(old)
        moved = self.chance.choice(
            [1, -1, 0],
            size,
            p=[design.up[model], design.down, 1 - design.up[model] - design.down],
        )
        new = np.clip(old + moved, 1, 5)
        said: IntArray = new[self.chance.random(len(new)) >= design.silent]
        return said

    def _judged(self) -> TwiceJudged:
        cell, run, item = np.array([row[:3] for row in self._rows], dtype=np.int64).T
        old, new = (
            np.array([np.bincount(row[side] - 1, minlength=5) for row in self._rows]) for side in (3, 4)
        )
        text = np.arange(len(cell))
        return TwiceJudged(self.cells, cell, text, run, item, text, np.ones(len(cell), dtype=bool), old, new)

    def anchored(self, seed: int) -> TwiceJudged:
        """With a sample of anchors."""
        sample = SampleIn(responses=self.design.anchors, seed=seed, by=self.design.by)
        keys = {text.key for text in drawn(self.stored, sample, self.personas)}
        anchor = np.array([text.key in keys for text in self.stored])
        one = replace(self.judged, anchor=anchor, new=np.where(anchor[:, None], self.judged.new, 0))
        return replace(one, draw=self._pairs(one, seed)) if self.design.by == "run_pairs" else one

    def _pairs(self, one: TwiceJudged, seed: int) -> IntArray:
        draw = np.empty(len(one.cell), dtype=np.int64)
        for cell, place in one.by_cell():
            for kind in (True, False):
                own = one.anchor[place] == kind
                pair_of = run_pairs(seed, cell[:3], set(one.run[place][own].tolist()))
                pairs = [pair_of[run] for run in one.run[place][own].tolist()]
                draw[place.start + np.flatnonzero(own)] = 1000 * one.cell[place][own] + 500 * kind + pairs
        return draw

    def figures(self, judged: TwiceJudged) -> list[BridgedFigure]:
        """The product's."""
        what = PAIRS if self.design.by == "run_pairs" else TEXTS
        return (bridged_grades if self.design.graded else bridged_sentences)(judged, WITHIN, what)


def coverage(design: Design, repetitions: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """By metric: the share of intervals that hold the truth, their mean width, and how often findings are false.

    Args:
        design: How the judges differ.
        repetitions: How often anchors are drawn.
        seed: Of judges and anchors.
    """
    texts = Texts(design, seed)
    truth = {
        (figure.metric, str(figure.group)): figure.bridged.value for figure in texts.figures(texts.judged)
    }
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    widths: dict[str, list[float]] = defaultdict(list)
    errors: dict[str, list[float]] = defaultdict(list)
    for repetition in range(repetitions):
        for figure in texts.figures(texts.anchored(repetition)):
            true, bridged = truth[figure.metric, str(figure.group)], figure.bridged
            if bridged.ci95 is None or bridged.value is None or true is None:
                continue
            widths[figure.metric].append(bridged.ci95[1] - bridged.ci95[0])
            errors[figure.metric].append(bridged.value - true)
            _count(counts[figure.metric], figure, true)
    return {metric: _shares(count, widths[metric], errors[metric]) for metric, count in counts.items()}


def _count(count: Counter[str], figure: BridgedFigure, true: float) -> None:
    assert figure.bridged.ci95 is not None and figure.old.value is not None  # noqa: PT018 - it has an interval
    low, high = figure.bridged.ci95
    count["intervals"] += 1
    count["covered"] += low <= true <= high
    apart = abs(true - figure.old.value) > WITHIN * WIDTHS.get(figure.metric, 1.0)
    count["apart"] += apart
    count["said interchangeable though not"] += apart and figure.finding == "interchangeable"
    count["within"] += not apart
    count["said different though not"] += not apart and figure.finding == "different"


def _shares(count: Counter[str], widths: Sequence[float], errors: Sequence[float]) -> dict[str, float]:
    return {
        "intervals": count["intervals"],
        "coverage": round(count["covered"] / count["intervals"], 4),
        "width": round(float(np.mean(widths)), 4),
        "bias": round(float(np.mean(errors)), 4),
        "false_interchangeable": round(count["said interchangeable though not"] / max(1, count["apart"]), 4),
        "false_different": round(count["said different though not"] / max(1, count["within"]), 4),
    }


def main() -> None:
    """Prints what was measured."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name, design in DESIGNS.items():
        print(json.dumps({name: coverage(design, repetitions)}), flush=True)


if __name__ == "__main__":
    main()
