"""How often intervals cover the truth, on simulated data whose truth is known.

`python -m benchmarks.inference [--full]`

The quick form has 150 repetitions of each design, an entry then being uncertain by 1.8 points; the full form 1,000 and 0.7.
"""

import argparse
import json
from collections.abc import Mapping

import numpy as np

from app.domain.statistics.design import Population
from benchmarks.inference.coverage import EFFECTS, LAYOUTS, PERSONAS, Key, Row, coverage
from benchmarks.inference.population import METRICS, Pool

QUICK, FULL = 150, 1000


def main() -> None:
    """Prints one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    repetitions = FULL if parser.parse_args().full else QUICK
    pool = Pool.drawn(np.random.default_rng(0))
    for layout_name, layout in LAYOUTS.items():
        for effect, spread in EFFECTS.items():
            for strata in (1, 3):
                design = {"layout": layout_name, "effect": effect, "levels": strata}
                _print_rows(design, coverage(pool, spread, layout, strata, repetitions, seed=3))


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


if __name__ == "__main__":
    main()
