"""Which runs of a cell are drawn together, in a sample of whole pairs of runs.

RC_atom compares runs, so that a sample tells it only where it has two whole runs of a cell. A cell's runs are put in an order
by chance, which depends on nothing but the sample's seed and the cell's names, and two that follow each other are a pair; the
last three stay together where their number is odd. Of a sample of whole pairs, the same rule finds the pairs again.
"""

import hashlib
from collections.abc import Collection

Names = tuple[str, str, str]
"""Model's label, persona's id, task's id."""


def run_pairs(seed: int, cell: Names, runs: Collection[int]) -> dict[int, int]:
    """The number of each run's pair, from 0.

    Args:
        seed: The sample's.
        cell: Whose runs they are.
        runs: Those of all texts, or those of a sample of whole pairs.
    """
    order = sorted(
        runs, key=lambda run: hashlib.sha256("\0".join((str(seed), *cell, str(run))).encode()).digest()
    )
    last = max(0, len(order) // 2 - 1)
    return {run: min(n // 2, last) for n, run in enumerate(order)}
