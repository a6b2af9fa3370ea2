"""How often nominal 95 % intervals cover the truth, on simulated data whose truth is known.

`python -m benchmarks.coverage [--repetitions N] [--design NAME]`

The truth of a cell's metric is its mean over many repetitions of the same measurement; that of a total over personas the mean
of the population from which the personas come, and for the interval over runs, of these very personas.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.metrics.cell import measure
from app.domain.metrics.metric import FloatArray
from app.domain.metrics.registry import names, range_of
from app.domain.metrics.scores import CellScores
from app.domain.statistics.cells import estimate_cell
from app.domain.statistics.groups import Member, PersonaSample, stratified_interval

METRICS = names()
OVER_RUNS = ("mean", "acc_atom")
"""Metrics whose truth for given personas can be computed by hand."""
RUNS = (5, 10, 30)
PERSONAS = (15, 50)
RUNS_OF_TOTAL = 10
TRUTH_REPETITIONS = 5_000
"""The truth's own error is then 1.5 % of a figure's standard deviation."""
PERSONA_STEADINESS = 20.0
"""Of a persona's distribution about all personas' (Dirichlet)."""


@dataclass(frozen=True, slots=True)
class Design:
    """How the sentences of a cell's runs are scored.

    Attributes:
        shares: Of the scores 1 to 5, in the long run.
        steadiness: Of a run's own distribution about these (Dirichlet).
        sentences: Of a run.
    """

    shares: tuple[float, ...]
    steadiness: float
    sentences: int


DESIGNS = {
    "mixed": Design((0.05, 0.1, 0.15, 0.3, 0.4), 8.0, 12),
    "unsteady": Design((0.05, 0.1, 0.15, 0.3, 0.4), 2.0, 12),
    "torn": Design((0.4, 0.08, 0.04, 0.08, 0.4), 8.0, 12),
    "even": Design((0.2, 0.2, 0.2, 0.2, 0.2), 8.0, 20),
}


def main() -> None:
    """Prints the coverage of each metric's interval by design and number of runs, and of totals' by number of personas."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--design", choices=DESIGNS)
    chosen = parser.parse_args()
    draws = np.random.default_rng(0)
    for name, design in DESIGNS.items():
        if chosen.design in {None, name}:
            for runs in RUNS:
                found = cell_coverage(draws, design, runs, chosen.repetitions)
                print(json.dumps({"design": name, "runs": runs, **found}), flush=True)
    for personas in PERSONAS:
        print(json.dumps({"personas": personas, **total_coverage(draws, personas, chosen.repetitions)}))


def cell_coverage(
    draws: np.random.Generator, design: Design, runs: int, repetitions: int
) -> dict[str, float]:
    """How often each metric's interval covers its truth, 0–1."""
    many = [measure(simulated_cell(draws, design, runs)) for _ in range(TRUTH_REPETITIONS)]
    truths = {name: float(np.mean([each[name].value for each in many])) for name in METRICS}
    hits: dict[str, list[bool]] = defaultdict(list)
    for repetition in range(repetitions):
        scores = {"judge": simulated_cell(draws, design, runs)}
        metrics = estimate_cell(scores, np.arange(runs), repetition, ("m", "p", "t")).metrics
        for name in METRICS:
            hits[name].append(_covers(metrics[name].ci95, truths[name]))
    return _shares(hits)


def total_coverage(draws: np.random.Generator, personas: int, repetitions: int) -> dict[str, float]:
    """The same of means over personas, whose long-run distributions vary about the first design's.

    Those over these very personas, if only their runs were repeated, are named ``…_runs``.
    """
    design, names = DESIGNS["mixed"], [f"p{n}" for n in range(personas)]
    many = [measure(_of_a_persona(draws, design)[0]) for _ in range(4 * TRUTH_REPETITIONS)]
    truths = {name: float(np.mean([each[name].value for each in many])) for name in METRICS}
    hits: dict[str, list[bool]] = defaultdict(list)
    for repetition in range(repetitions):
        cells, shares = zip(*(_of_a_persona(draws, design) for _ in names), strict=True)
        found = [
            estimate_cell({"judge": cell}, np.arange(RUNS_OF_TOTAL), repetition, ("m", name, "t"))
            for name, cell in zip(names, cells, strict=True)
        ]
        sample = PersonaSample(names, repetition)
        for metric in METRICS:
            values = [value for each in found if (value := each.metrics[metric].value) is not None]
            members = [
                Member(("m", name, "t"), name, value, each.influences.get(metric))
                for name, value, each in zip(names, values, found, strict=True)
            ]
            mean, bounds = float(np.mean(values)), range_of(metric, (1.0, 5.0))
            hits[metric].append(_covers(sample.over_cells(mean, members, bounds).ends, truths[metric]))
            if metric in OVER_RUNS:
                own = float(np.mean([_expected(metric, share) for share in shares]))
                interval = stratified_interval(mean, members, bounds, "runs")
                hits[f"{metric}_runs"].append(_covers(interval.ends, own))
    return _shares(hits)


def simulated_cell(draws: np.random.Generator, design: Design, runs: int) -> CellScores:
    """A cell whose runs' score distributions vary about the design's."""
    shares = draws.dirichlet(np.array(design.shares) * design.steadiness, size=runs)
    return CellScores(
        scale=Scale(),
        level=2,
        runs=np.arange(runs),
        instructions=np.arange(runs) * 6 // runs,
        histograms=np.array([draws.multinomial(design.sentences, share) for share in shares]),
        excluded={},
    )


def _of_a_persona(draws: np.random.Generator, design: Design) -> tuple[CellScores, FloatArray]:
    """A persona's cell and its long-run distribution of scores."""
    shares = draws.dirichlet(np.array(design.shares) * PERSONA_STEADINESS)
    own = Design(tuple(shares.tolist()), design.steadiness, design.sentences)
    return simulated_cell(draws, own, RUNS_OF_TOTAL), shares


def _expected(metric: str, shares: FloatArray) -> float:
    """MEAN, or ACC_atom of level high, of scores that have these shares in the long run."""
    return float(shares @ np.arange(1, 6) if metric == "mean" else shares[3:].sum())


def _covers(ends: Sequence[float] | None, truth: float) -> bool:
    return ends is not None and ends[0] <= truth <= ends[1]


def _shares(hits: dict[str, list[bool]]) -> dict[str, float]:
    return {name: round(float(np.mean(found)), 3) for name, found in hits.items()}


if __name__ == "__main__":
    main()
