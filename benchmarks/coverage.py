"""How often nominal 95 % intervals cover the truth, on simulated data whose truth is known.

`python -m benchmarks.coverage [--repetitions N]`

The truth of a cell's metric is its mean over many repetitions of the same measurement; that of a total over personas
is the mean of the population from which the personas come.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from app.domain.dimension import Scale
from app.domain.metrics.cell import measure
from app.domain.metrics.scores import CellScores
from app.domain.statistics.cells import estimate_cell
from app.domain.statistics.groups import Member, PersonaSample

METRICS = ("mean", "acc", "rc", "acc_atom", "ic_atom", "rc_atom")
SCORE_SHARES = (0.05, 0.1, 0.15, 0.3, 0.4)
STEADINESS = 8.0
"""Of a run's own distribution about the shares above (Dirichlet)."""
SENTENCES = 12
PAPER_RUNS, FEW_RUNS = 30, 10
TRUTH_REPETITIONS = 20_000
PERSONAS = (15, 50)


def main() -> None:
    """Prints the coverage of each metric's interval by number of runs, and of totals' by number of personas."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    repetitions = parser.parse_args().repetitions
    draws = np.random.default_rng(0)
    found = {
        "cells": {runs: cell_coverage(draws, runs, repetitions) for runs in (FEW_RUNS, PAPER_RUNS)},
        "totals": {personas: total_coverage(draws, personas, repetitions) for personas in PERSONAS},
    }
    print(json.dumps({"repetitions": repetitions, **found}, indent=2))


def cell_coverage(draws: np.random.Generator, runs: int, repetitions: int) -> dict[str, float]:
    """How often each metric's interval covers its truth, 0–1."""
    many = [measure(simulated_cell(draws, runs)) for _ in range(TRUTH_REPETITIONS)]
    truths = {name: float(np.mean([getattr(each, name).value for each in many])) for name in METRICS}
    hits: dict[str, list[bool]] = defaultdict(list)
    for repetition in range(repetitions):
        metrics = estimate_cell(
            {"judge": simulated_cell(draws, runs)}, np.arange(runs), repetition, ("m", "p", "t")
        ).metrics
        for name in METRICS:
            hits[name].append(_covers(getattr(metrics, name).interval.ends, truths[name]))
    return _shares(hits)


def total_coverage(draws: np.random.Generator, personas: int, repetitions: int) -> dict[str, float]:
    """Personas whose figures are spread like a good model's: Beta(4, 1.5), mean 8/11."""
    hits = []
    names = [f"p{n}" for n in range(personas)]
    for repetition in range(repetitions):
        values = draws.beta(4.0, 1.5, size=personas)
        members = [Member(("m", n, "t"), n, float(v), None) for n, v in zip(names, values, strict=True)]
        sample = PersonaSample(names, repetition)
        interval = sample.over_cells(float(values.mean()), members, (0.0, 1.0))
        hits.append(_covers(interval.ends, 4.0 / 5.5))
    return _shares({"mean of personas": hits})


def simulated_cell(draws: np.random.Generator, runs: int) -> CellScores:
    """A cell whose runs' score distributions vary about ``SCORE_SHARES``."""
    shares = draws.dirichlet(np.array(SCORE_SHARES) * STEADINESS, size=runs)
    return CellScores(
        scale=Scale(),
        level=2,
        runs=np.arange(runs),
        instructions=np.arange(runs) * 6 // runs,
        histograms=np.array([draws.multinomial(SENTENCES, share) for share in shares]),
        excluded={},
    )


def _covers(ends: Sequence[float] | None, truth: float) -> bool:
    return ends is not None and ends[0] <= truth <= ends[1]


def _shares(hits: dict[str, list[bool]]) -> dict[str, float]:
    return {name: round(float(np.mean(found)), 3) for name, found in hits.items()}


if __name__ == "__main__":
    main()
