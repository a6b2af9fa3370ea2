"""`make fuzz`: a million replies and instrument files and 500,000 files of users on all cores; prints the seed of what fails, and how many were tried."""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random

from tests.fuzz.bundles import complete_bundle
from tests.fuzz.files import check_block
from tests.fuzz.instruments import check_instrument
from tests.fuzz.replies import check_one

BLOCK = 5_000
INSTRUMENTS = 50
"""One case in so many is an instrument file: reading YAML takes a hundred times as long."""


def try_block(seed: int, block: int) -> int:
    """Tries a block of cases, each from a seed of its own.

    Raises:
        AssertionError: If one is read as what it does not say, with its seed; whatever else it raises is a crash.
    """
    for number in range(block * BLOCK, (block + 1) * BLOCK):
        draw = Random(f"{seed}/{number}")
        try:
            (check_one if number % INSTRUMENTS else check_instrument)(draw)
        except Exception as error:
            raise AssertionError(f"case {number} of seed {seed}: {error!r}") from error
    return BLOCK


def main() -> None:
    """Tries all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    started = time.monotonic()
    bundle = complete_bundle()
    with ProcessPoolExecutor(arguments.processes) as pool:
        blocks = -(-arguments.cases // BLOCK)
        tried = sum(pool.map(partial(try_block, arguments.seed), range(blocks)))
        starts = range(0, arguments.files, BLOCK)
        ends = sum(pool.map(partial(check_block, bundle, arguments.seed, count=BLOCK), starts), Counter())
    seconds = time.monotonic() - started
    sys.stdout.write(
        f"{tried:,} cases of seed {arguments.seed}: no crash, no wrong number; {seconds:.0f} s\n"
        f"{ends.total():,} files: {dict(ends)}\n"
    )


if __name__ == "__main__":
    main()
