"""What goes with what, as a page shows it: in the form of Tables 4 and 8, and by length (atomic paper, section 6)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

ROWS = ("acc", "rc", "acc_atom", "ic_atom")
COLUMNS = ("acc_atom", "rc_atom", "ic_atom")
LENGTH_METRICS = ("ic_atom", "acc_atom", "rc_atom")


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Correlations over a job's cells.

    Attributes:
        rows: For each of ``ROWS``, the correlation with each of ``COLUMNS``; ``None`` where the tables have none.
        lengths: For all tasks (``None``) and each task, for each of ``LENGTH_METRICS``, the correlation with the number of
            sentences and with that of scored ones.
    """

    rows: Sequence[tuple[str, Sequence[Json | None]]]
    lengths: Sequence[tuple[str | None, Sequence[Json]]]


def coefficients(results: Json) -> Coefficients | None:
    """The correlations of a results document; ``None`` where it has none, as with two cells."""
    pairs = {frozenset(found["metrics"]): found["r"] for found in results.get("correlations", [])}
    if all(r["value"] is None for r in pairs.values()):
        return None
    lengths: dict[str | None, dict[str, Json]] = defaultdict(dict)
    for found in results["length_effects"]:
        lengths[found["task"]][found["metric"]] = found
    shown = {("acc_atom", "acc_atom"), ("ic_atom", "acc_atom"), ("ic_atom", "ic_atom")}
    return Coefficients(
        rows=[
            (row, [None if (row, column) in shown else pairs[frozenset((row, column))] for column in COLUMNS])
            for row in ROWS
        ],
        lengths=[
            (task, [r for name in LENGTH_METRICS for r in (by[name]["units"], by[name]["scored_units"])])
            for task, by in lengths.items()
        ],
    )
