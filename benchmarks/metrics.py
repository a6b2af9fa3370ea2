"""The metrics of the papers' whole study, 540 cells of 12 models, from scores to JSON text, intervals included; and two judges' agreement.

`python -m benchmarks.metrics`
"""

import json
import time
from collections.abc import Iterator

import numpy as np

from app.domain.dimension import Scale
from app.domain.metrics.scores import CellScores
from app.domain.results import CellResult
from app.domain.statistics.cells import estimate_cell
from app.domain.statistics.groups import PersonaSample
from app.domain.totals import summarize
from app.domain.verdict import VerdictStatus
from app.domain.verdict_agreement import JointScores, verdict_agreement

SCALE = Scale()
MODELS = 12
RUNS = 30
TASKS = (("questionnaire", 10, 6), ("essay", 1, 15), ("social_media_post", 1, 22))
"""Name, items of a run and sentences of a response."""

Key = tuple[str, str, str, str, str]


def main() -> None:
    """Prints how long each step takes, in seconds."""
    scores = list(_study(np.random.default_rng(0)))
    units = sum(int(cell.counts.sum()) + sum(cell.excluded.values()) for _, cell in scores)
    started = time.perf_counter()
    cells = [_measured(key, cell) for key, cell in scores]
    measured = time.perf_counter()
    results = summarize(cells, seed=0)
    summarized = time.perf_counter()
    text = json.dumps(results.to_json(), allow_nan=False)
    written = time.perf_counter()
    joint = list(_second_judge(np.random.default_rng(1), scores))
    paired = time.perf_counter()
    verdict_agreement(joint, ("judge", "second"), PersonaSample([cell.persona for cell in joint], 0))
    agreed = time.perf_counter()
    figures = {
        "cells": len(cells),
        "units": units,
        "metrics_seconds": round(measured - started, 3),
        "totals_seconds": round(summarized - measured, 3),
        "json_seconds": round(written - summarized, 3),
        "json_bytes": len(text),
        "verdicts_of_two_judges": sum(2 * int(cell.counts.sum()) for cell in joint),
        "agreement_seconds": round(agreed - paired, 3),
    }
    print(json.dumps(figures, indent=2))


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


def _measured(key: Key, scores: CellScores) -> CellResult:
    found = estimate_cell({"judge": scores}, np.arange(RUNS), 0, key[:3])
    return CellResult(*key, RUNS, found.metrics, found.by_judge, influences=found.influences)


if __name__ == "__main__":
    main()
