"""How often a gate passes or fails wrongly, and how often it decides, on simulated data whose truth is known.

`python -m benchmarks.inference.gates [repetitions]`. ACC_atom of cells of 12 runs under 6 wordings, 12 sentences each; personas
vary about their level's distribution of scores, models about a persona's, and runs about both. Limits lie so far below the truth.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.metrics.acc_atom import acc_atom
from app.domain.metrics.metric import FloatArray
from app.domain.metrics.scores import CellScores
from app.domain.results.comparison import Figure, Place, compare
from app.domain.results.results import MeasuredCell
from app.domain.results.totals import totals
from app.domain.statistics.cells import estimate_cell

RUNS, WORDINGS, SENTENCES = 12, 6, 12
STEADINESS = {"persona": 40.0, "model": 40.0, "run": 8.0}
"""Of distributions about what they vary from (Dirichlet)."""
SHARES = {
    "low": (0.35, 0.3, 0.2, 0.1, 0.05),
    "neutral": (0.1, 0.2, 0.35, 0.25, 0.1),
    "high": (0.05, 0.1, 0.15, 0.3, 0.4),
}
DESIGNS = {"one level": ("high",), "three levels": ("low", "neutral", "high")}
PERSONAS = (6, 15)
LIMITS = (-0.1, -0.05, 0.0, 0.05, 0.1)
"""Below the truth, so that a gate at the first ones should fail, and at the last ones pass."""
MARGIN = 0.03
WORSE = (2 * MARGIN, MARGIN, 0.0)
"""How much worse a model is than the other job's."""
SCALE = Scale()


def main() -> None:
    """Prints one JSON object a line: the share of gates that passed and failed."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    draws = np.random.default_rng(0)
    for name, levels in DESIGNS.items():
        for personas in PERSONAS:
            design = {"design": name, "personas": personas}
            for below, found in bounds(draws, levels, personas, repetitions).items():
                print(json.dumps(design | {"limit_below_truth_by": below} | found), flush=True)
            for worse in WORSE:
                found = not_worse(draws, levels, personas, worse, repetitions)
                print(json.dumps(design | {"margin": MARGIN, "worse_by": worse} | found), flush=True)


def bounds(
    draws: np.random.Generator, levels: Sequence[str], personas: int, repetitions: int
) -> dict[float, dict[str, float]]:
    """What `acc_atom>=limit over personas like these` says, by how far the limit is below the truth."""
    truth = float(np.mean([_in_level(level, np.array(SHARES[level])) for level in levels]))
    verdicts: dict[float, Counter[str]] = {below: Counter() for below in LIMITS}
    for _ in range(repetitions):
        cells = [_measured(draws, name, level) for name, level in _personas(levels, personas)]
        ends = totals(cells, intervals=True)[0].metrics["acc_atom"].ci95
        for below, found in verdicts.items():
            found[_verdict(ends, truth - below)] += 1
    return {below: _shares(found) for below, found in verdicts.items()}


def not_worse(
    draws: np.random.Generator, levels: Sequence[str], personas: int, worse: float, repetitions: int
) -> dict[str, float]:
    """What `acc_atom not worse than JOB by MARGIN` says of a model that is worse by so much."""
    verdicts: Counter[str] = Counter()
    for _ in range(repetitions):
        sides: tuple[dict[tuple[str, Place], Figure], ...] = ({}, {})
        for name, level in _personas(levels, personas):
            persona = _about(draws, np.array(SHARES[level]), STEADINESS["persona"])
            for side, shift in zip(sides, (worse, 0.0), strict=True):
                own = _shifted(level, _about(draws, persona, STEADINESS["model"]), shift)
                value = acc_atom(_cell(draws, level, own)).value
                side["acc_atom", Place(name, "essay", "E", level)] = Figure(value, None, (0.0, 1.0))
        verdicts[_verdict(compare(*sides).differences[0].ci95, -MARGIN)] += 1
    return _shares(verdicts)


def _personas(levels: Sequence[str], personas: int) -> list[tuple[str, str]]:
    return [(f"p{n}", levels[n % len(levels)]) for n in range(personas)]


def _measured(draws: np.random.Generator, persona: str, level: str) -> MeasuredCell:
    shares = _about(draws, np.array(SHARES[level]), STEADINESS["persona"])
    scores = _cell(draws, level, _about(draws, shares, STEADINESS["model"]))
    found = estimate_cell({"judge": scores}, np.arange(RUNS))
    return MeasuredCell(
        model="m",
        persona=persona,
        task="essay",
        dimension="E",
        level=level,
        runs=RUNS,
        metrics=found.metrics,
        varied=found.varied,
    )


def _cell(draws: np.random.Generator, level: str, shares: FloatArray) -> CellScores:
    of_runs = draws.dirichlet(shares * STEADINESS["run"] + 1e-6, size=RUNS)
    return CellScores(
        scale=SCALE,
        level=SCALE.levels.index(level),
        runs=np.arange(RUNS),
        instructions=np.arange(RUNS) * WORDINGS // RUNS,
        histograms=np.array([draws.multinomial(SENTENCES, share) for share in of_runs]),
        excluded={},
    )


def _about(draws: np.random.Generator, shares: FloatArray, steadiness: float) -> FloatArray:
    return draws.dirichlet(shares * steadiness + 1e-6)


def _levels() -> FloatArray:
    return np.array([SCALE.level_index(score, 1) for score in range(SCALE.minimum, SCALE.maximum + 1)])


def _in_level(level: str, shares: FloatArray) -> float:
    return float(shares[_levels() == SCALE.levels.index(level)].sum())


def _shifted(level: str, shares: FloatArray, by: float) -> FloatArray:
    """The shares, with the level's made smaller so that its mean over personas is smaller by so much."""
    inside = _levels() == SCALE.levels.index(level)
    part = by / _in_level(level, np.array(SHARES[level]))
    outside = np.where(inside, 0.0, shares)
    moved = part * shares[inside].sum()
    return np.where(inside, shares * (1 - part), shares + moved * outside / outside.sum())


def _verdict(ends: tuple[float, float] | None, limit: float) -> str:
    """As :func:`app.domain.results.gate.judge_gate` decides by an interval."""
    if ends is None:
        return "inconclusive"
    return "pass" if ends[0] >= limit else "fail" if ends[1] < limit else "inconclusive"


def _shares(verdicts: Counter[str]) -> dict[str, float]:
    return {verdict: round(verdicts[verdict] / verdicts.total(), 4) for verdict in ("pass", "fail")}


if __name__ == "__main__":
    main()
