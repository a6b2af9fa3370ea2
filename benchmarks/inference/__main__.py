"""How often intervals cover the truth, and comparisons alarm falsely and find what they say, on simulated data whose truth is known.

`python -m benchmarks.inference [--full] [--part coverage|comparisons|planning|models]`

The quick form has 150 repetitions of each design, an entry then being uncertain by 1.8 points; the full form 1,000 and 0.7.
"""

import argparse
import json
from collections.abc import Mapping
from itertools import product

import numpy as np

from app.domain.statistics.design import Population
from benchmarks.inference.comparisons import EFFECTS as EFFECTS_OF_WORDING
from benchmarks.inference.comparisons import NOISE, PLANNED, SIZES, found_share, planned_power, stated_power
from benchmarks.inference.coverage import EFFECTS, LAYOUTS, PERSONAS, Key, Row, coverage
from benchmarks.inference.models import family
from benchmarks.inference.population import METRICS, Pool

QUICK, FULL = 150, 1000
MODELS = 6


def main() -> None:
    """Prints one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--part", choices=("coverage", "comparisons", "planning", "models"))
    chosen = parser.parse_args()
    repetitions = FULL if chosen.full else QUICK
    if chosen.part in {None, "coverage"}:
        _coverage(repetitions)
    if chosen.part in {None, "comparisons"}:
        _comparisons(10 * repetitions)
    if chosen.part in {None, "planning"}:
        _planning(10 * repetitions)
    if chosen.part in {None, "models"}:
        _models(2 * repetitions)


def _coverage(repetitions: int) -> None:
    pool = Pool.drawn(np.random.default_rng(0))
    designs = product(LAYOUTS.items(), EFFECTS.items(), (1, 3))
    for seed, ((layout_name, layout), (effect, spread), strata) in enumerate(designs):
        design = {"layout": layout_name, "effect": effect, "levels": strata}
        _print_rows(design, coverage(pool, spread, layout, strata, repetitions, seed))


def _print_rows(design: Mapping[str, object], rows: dict[Key, Row]) -> None:
    for population in Population:
        for personas in PERSONAS:
            found = {metric: rows[personas, metric, population] for metric in METRICS}
            line = {
                metric: {"coverage": round(100 * row.coverage, 1), "width": round(row.width / row.printed, 3)}
                if row.printed
                else sorted(row.reasons)
                for metric, row in found.items()
            }
            print(
                json.dumps({**design, "population": population.value, "personas": personas, **line}),
                flush=True,
            )


def _comparisons(repetitions: int) -> None:
    for size in SIZES:
        draws = np.random.default_rng(4)
        alarms, power = {}, {}
        for effect in EFFECTS_OF_WORDING:
            noise = NOISE._replace(wordings=effect, both=effect / 2)
            alarms[effect] = found_share(draws, noise, size, 0.0, repetitions)
            power[effect] = stated_power(draws, noise, size, repetitions)
        line = {**size._asdict(), "false_alarms": alarms, "power_at_the_stated_difference": power}
        print(json.dumps(line), flush=True)


def _planning(repetitions: int) -> None:
    for design in PLANNED:
        size, power, found = planned_power(np.random.default_rng(5), design, repetitions)
        line = {**size._asdict(), "population": design.population.value, "difference": design.difference}
        line["models"] = design.models
        print(json.dumps({**line, "power": power, "found": round(found, 3)}), flush=True)


def _models(repetitions: int) -> None:
    for size, effect in product(SIZES[:2], (None, *EFFECTS_OF_WORDING)):
        noise = NOISE._replace(wordings=effect or 0.0, both=(effect or 0.0) / 2)
        draws, known = np.random.default_rng(5), effect is not None
        equal = family(draws, noise, size, [[0.0] * MODELS] * repetitions, wordings=known)
        unequal = [[stated, *[0.0] * (MODELS - 1)] for stated in equal.detectable]
        beside = family(draws, noise, size, unequal, wordings=known)
        line = {
            **size._asdict(),
            "wordings_differ": effect,
            "false_alarms": equal.false_alarms,
            "detectable": float(np.mean(equal.detectable)),
            "power_at_the_stated_difference": beside.told_apart,
            "false_alarms_beside_one_that_differs": beside.false_alarms,
            "intervals_missed_beside_it": beside.intervals_missed,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
