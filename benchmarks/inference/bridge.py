"""A new judge with a known shift: how often the bridge's intervals hold what it would have given all texts.

``python -m benchmarks.inference.bridge [repetitions]``. In each repetition new anchors are drawn of the same texts, by the product's
own sampling, and bridged by its own figures; the truth is the new judge's total of all texts.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.domain.instruments.persona import Persona, Trait
from app.domain.jobs.source_request import SampleIn
from app.domain.jobs.stored_texts import drawn
from app.domain.jobs.text_source import StoredText
from app.domain.metrics.metric import IntArray
from app.domain.results.bridge import JudgedText, Scored, bridged_figures
from app.domain.results.paired_verdicts import Position

LEVELS = ("low", "neutral", "high")
OF_LEVEL = {"low": (1, 2), "neutral": (3, 3), "high": (4, 5)}
TASKS = {"questionnaire": 6, "essay": 15, "social_media_post": 22}
"""Sentences of a text."""
PERSONAS, MODELS, RUNS = 9, 3, 10
WITHIN = 0.05


@dataclass(frozen=True, slots=True)
class Design:
    """How the new judge differs from the old one, and how many anchors there are.

    Attributes:
        anchors: How many texts both judge.
        up: How likely it gives a point more than the old one, by model; of a text all sentences or none where ``whole``.
        down: How likely a point less.
        whole: Whether it is a whole text that it judges otherwise.
        silent: How likely it finds that a sentence does not apply.
    """

    anchors: int
    up: tuple[float, ...] = (0.15,) * MODELS
    down: float = 0.03
    whole: bool = False
    silent: float = 0.0


DESIGNS: Mapping[str, Design] = {
    "100 anchors": Design(100),
    "200 anchors": Design(200),
    "400 anchors": Design(400),
    "the same judge but for noise": Design(200, up=(0.05,) * MODELS, down=0.05),
    "shifted for one model": Design(200, up=(0.4, 0.1, 0.0)),
    "whole texts judged otherwise": Design(200, whole=True),
    "a third of the sentences not applicable": Design(200, silent=0.33),
}


class Texts:
    """Texts that an old judge has judged, and what the new one would give each.

    Args:
        design: How they differ.
        seed: Of the judges' scores.
    """

    def __init__(self, design: Design, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.personas = [
            Persona(f"{level} {n}", "", (Trait("E", level),))
            for level in LEVELS
            for n in range(PERSONAS // 3)
        ]
        self.stored: list[StoredText] = []
        self.judged: list[JudgedText] = []
        self.new: dict[tuple[Position, str], Scored | None] = {}
        cell = 0
        for persona in self.personas:
            for task, sentences in TASKS.items():
                for model in range(MODELS):
                    self._add(design, cell, persona, task, sentences, model)
                    cell += 1

    def _add(
        self, design: Design, cell: int, persona: Persona, task: str, sentences: int, model: int
    ) -> None:
        level = persona.traits[0].level
        centre = {"low": 1.8, "neutral": 3.0, "high": 4.2}[level] + self.chance.normal(0, 0.3)
        for run in range(RUNS):
            text = centre + self.chance.normal(0, 0.5)
            old = np.clip(np.rint(self.chance.normal(text, 0.8, sentences)), 1, 5).astype(np.int64)
            place = cell, run, 0
            self.stored.append(
                StoredText(f"m{model}", persona.id, task, "0", run, 0, "answered", sentences, place)
            )
            scored = self._scored(old, level)
            assert scored is not None
            self.judged.append(JudgedText(place, f"m{model}", task, "E", level, (1, 5), scored))
            self.new[place, "E"] = self._scored(self._by_new(design, old, model), level)

    def _by_new(self, design: Design, old: IntArray, model: int) -> IntArray:
        size = 1 if design.whole else len(old)
        moved = self.chance.choice(
            [1, -1, 0],
            size,
            p=[design.up[model], design.down, 1 - design.up[model] - design.down],
        )
        new = np.clip(old + moved, 1, 5)
        said: IntArray = new[self.chance.random(len(new)) >= design.silent]
        return said

    @staticmethod
    def _scored(scores: IntArray, level: str) -> Scored | None:
        if not len(scores):
            return None
        least, most = OF_LEVEL[level]
        hits = int(((scores >= least) & (scores <= most)).sum())
        return Scored(len(scores), int(scores.sum()), int((scores**2).sum()), hits)


def coverage(design: Design, repetitions: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """By metric: the share of intervals that hold the truth, their mean width, and how often findings are false.

    Args:
        design: How the judges differ.
        repetitions: How often anchors are drawn.
        seed: Of judges and anchors.
    """
    texts = Texts(design, seed)
    truth = {
        (figure.metric, str(figure.group)): figure.bridged.value
        for figure in bridged_figures(texts.judged, texts.new, WITHIN)
    }
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    widths: dict[str, float] = defaultdict(float)
    for repetition in range(repetitions):
        sample = drawn(texts.stored, SampleIn(responses=design.anchors, seed=repetition), texts.personas)
        anchors = {(text.key, "E"): texts.new[text.key, "E"] for text in sample}
        for figure in bridged_figures(texts.judged, anchors, WITHIN):
            true = truth[figure.metric, str(figure.group)]
            if figure.bridged.ci95 is None or true is None or figure.old.value is None:
                continue
            low, high = figure.bridged.ci95
            count = counts[figure.metric]
            count["intervals"] += 1
            count["covered"] += low <= true <= high
            widths[figure.metric] += high - low
            margin = WITHIN * (4 if figure.metric == "mean" else 1)
            apart = abs(true - figure.old.value) > margin
            count["apart"] += apart
            count["said interchangeable though not"] += apart and figure.finding == "interchangeable"
            count["within"] += not apart
            count["said different though not"] += not apart and figure.finding == "different"
    return {
        metric: {
            "intervals": count["intervals"],
            "coverage": round(count["covered"] / count["intervals"], 4),
            "width": round(widths[metric] / count["intervals"], 4),
            "false_interchangeable": round(
                count["said interchangeable though not"] / max(1, count["apart"]), 4
            ),
            "false_different": round(count["said different though not"] / max(1, count["within"]), 4),
        }
        for metric, count in counts.items()
    }


def main() -> None:
    """Prints what was measured."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for name, design in DESIGNS.items():
        print(json.dumps({name: coverage(design, repetitions)}), flush=True)


if __name__ == "__main__":
    main()
