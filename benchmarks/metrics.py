"""All statistics of the papers' whole study, 540 cells of 12 models, from scores to JSON text; and the report's figures.

Metrics with their intervals, totals, what goes with what, two judges' agreement, comparisons by cells and by items.

`python -m benchmarks.metrics`
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.cell import measure
from app.domain.metrics.registry import range_of
from app.domain.metrics.scores import CellScores
from app.domain.results.comparison import METRICS, Figure, Place, compare, figures_of
from app.domain.results.contract import Results, json_text, shown
from app.domain.results.results import MeasuredCell
from app.domain.results.totals import summarize
from app.domain.results.verdict_agreement import JointScores, verdict_agreement
from app.domain.statistics.cells import estimate_cell
from app.domain.statistics.groups import PersonaSample
from app.reports.material import Published
from app.services.results.baselines import BaselineFilter, baselines

SCALE = Scale()
MODELS = 12
RUNS = 30
TASKS = (("questionnaire", 10, 6), ("essay", 1, 15), ("social_media_post", 1, 22))
"""Name, items of a run and sentences of a response."""

FIGURES = ("models", "published", "heat_map", "scores", "cells")

Key = tuple[str, str, str, str, str]


def main() -> None:
    """Prints how long each step takes, in seconds of CPU and of wall time."""
    from app.reports.figures.files import figure_file

    scores = list(_study(np.random.default_rng(0)))
    joint = list(_second_judge(np.random.default_rng(1), scores))
    steps = Steps()
    with steps.step("metrics"):
        cells = [_measured(key, cell) for key, cell in scores]
    with steps.step("totals and correlations"):
        results = summarize(cells, seed=0)
    with steps.step("json"):
        found = shown(results)
        fields = ",".join(f'"{name}":{json_text(rows)}' for name, rows in found.items())
        text = f"{{{fields}}}"
    study = Results.model_construct(**found, simulated=False, persona_scores=[], manifest={})
    with steps.step("agreement of two judges"):
        verdict_agreement(joint, ("judge", "second"), PersonaSample([cell.persona for cell in joint], 0))
    with steps.step("comparison by cells"):
        compare(figures_of(study, "model 0"), figures_of(study, "model 1"))
    with steps.step("comparison by items"):
        compare(_item_figures(scores, "model 0"), _item_figures(scores, "model 1"))
    statistics = steps.total
    with steps.step("figures (not among them)"):
        published = Published.beside(study, baselines(BaselineFilter()))
        for name in FIGURES:
            figure_file(
                study,
                name,
                model="model 0",
                distances=[],
                among=published.among,
                accuracy=published.accuracy,
                file_format="svg",
                theme=None,
            )
    counts = {
        "cells": len(cells),
        "units": sum(int(cell.counts.sum()) + sum(cell.excluded.values()) for _, cell in scores),
        "verdicts_of_two_judges": sum(2 * int(cell.counts.sum()) for cell in joint),
        "json_bytes": len(text),
    }
    print(json.dumps({**counts, "seconds": steps.found, "all_statistics": statistics}, indent=2))


class Steps:
    """What each step takes.

    Attributes:
        found: CPU and wall seconds by step.
    """

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Times a step."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        taken = time.process_time() - cpu, time.perf_counter() - wall
        self.found[name] = {"cpu": round(taken[0], 3), "wall": round(taken[1], 3)}

    @property
    def total(self) -> dict[str, float]:
        """All steps so far."""
        return {kind: round(sum(step[kind] for step in self.found.values()), 3) for kind in ("cpu", "wall")}


def _study(draws: np.random.Generator) -> Iterator[tuple[Key, CellScores]]:
    for model in range(MODELS):
        for dimension in "OCEAN":
            for index, level in enumerate(SCALE.levels):
                for task, items, sentences in TASKS:
                    key = (f"model {model}", f"{dimension}-{level}", task, dimension, level)
                    yield key, _cell(draws, index, items, sentences)


def _second_judge(draws: np.random.Generator, scores: list[tuple[Key, CellScores]]) -> Iterator[JointScores]:
    """Every scored unit with a second judge's score, which is one of six options; as the database counts them."""
    for (_, persona, task, dimension, _), cell in scores:
        first = np.repeat(np.arange(SCALE.size), cell.histograms.sum(axis=0))
        units = np.stack([first, draws.integers(-1, SCALE.size, len(first))], axis=1)
        found, counts = np.unique(units, axis=0, return_counts=True)
        yield JointScores(persona, task, dimension, SCALE, found, counts)


def _cell(draws: np.random.Generator, level: int, items: int, sentences: int) -> CellScores:
    runs = np.repeat(np.arange(RUNS), items)
    options = draws.multinomial(sentences, draws.dirichlet(np.ones(SCALE.size + 1)), size=len(runs))
    return CellScores(
        scale=SCALE,
        level=level,
        runs=runs,
        instructions=runs // 5,
        histograms=options[:, : SCALE.size],
        excluded={VerdictStatus.NOT_APPLICABLE: int(options[:, SCALE.size].sum())},
    )


def _item_figures(scores: list[tuple[Key, CellScores]], model: str) -> dict[tuple[str, Place], Figure]:
    """A model's figures item by item; a cell's responses stand run by run, each run's items in order."""
    found: dict[tuple[str, Place], Figure] = {}
    for (label, persona, task, dimension, level), cell in scores:
        items = len(cell.runs) // RUNS
        for item in range(items if label == model else 0):
            own = slice(item, None, items)
            metrics = measure(
                CellScores(
                    SCALE, cell.level, cell.runs[own], cell.instructions[own], cell.histograms[own], {}
                )
            )
            place = Place(persona, task, dimension, level, str(item))
            for name in METRICS:
                metric = metrics[name]
                found[name, place] = Figure(metric.value, metric.reason, range_of(name, (1.0, 5.0)))
    return found


def _measured(key: Key, scores: CellScores) -> MeasuredCell:
    found = estimate_cell({"judge": scores}, np.arange(RUNS))
    return MeasuredCell(*key, RUNS, found.metrics, found.by_judge, varied=found.varied)


if __name__ == "__main__":
    main()
