"""Results as data frames of pandas or polars, which are asked for only here."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, TypeAlias

from persona_assay.errors import AssayError

Rows: TypeAlias = Literal["cells", "totals", "persona_scores", "persona_score_totals", "judges"]
Engine: TypeAlias = Literal["pandas", "polars"]

ENDS = ("low", "high")
LEFT_OUT = ("by_judge", "wording_effects")
"""Of a cell: a table of its own by judge or by instruction."""


def to_dataframe(results: Mapping[str, Any], rows: Rows = "cells", engine: Engine = "pandas") -> Any:
    """A list of the results as a data frame, a row for each of its members.

    A figure's column has the figure's name, its number of observations ``…_n``, the ends of its interval ``…_ci95_low`` and
    ``…_ci95_high``, as in the exports. Verdicts are in the Parquet report, which both libraries read.

    >>> results = {"cells": [{"persona": "E-high", "metrics": {"acc_atom": {"value": 0.9, "n": 40, "ci95": [0.8, 1.0]}}}]}
    >>> to_dataframe(results).to_dict("records")
    [{'persona': 'E-high', 'acc_atom': 0.9, 'acc_atom_n': 40, 'acc_atom_ci95_low': 0.8, 'acc_atom_ci95_high': 1.0}]

    Args:
        results: A job's results.
        rows: Which list.
        engine: Whose frame.

    Raises:
        AssayError: The library is not there, or these results have no such list.
    """
    if rows not in results:
        raise AssayError(f"these results have no {rows!r}")
    try:
        library = import_module(engine)
    except ImportError as error:
        raise AssayError(
            f"{engine} is not there; install it with: pip install 'persona-assay[{engine}]'"
        ) from error
    flat = [dict(_columns(member)) for member in results[rows]]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return library.DataFrame({name: [row.get(name) for row in flat] for name in names})


def _columns(member: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What a member holds by the names of its columns: what it is, its figures, then all else; longer lists are left out."""
    nested = [(name, value) for name, value in member.items() if isinstance(value, Mapping)]
    for name, value in member.items():
        full = prefix.removesuffix("_") if prefix and name == "value" else f"{prefix}{name}"
        if isinstance(value, list):
            yield from _of_list(full, value)
        elif not isinstance(value, Mapping):
            yield full, value
    for name, value in sorted(nested, key=lambda each: each[0] != "metrics"):
        if name not in LEFT_OUT:
            yield from _columns(value, prefix if name == "metrics" else f"{prefix}{name}_")


def _of_list(name: str, members: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    if "ci95" in name and len(members) == len(ENDS):
        yield from ((f"{name}_{end}", bound) for end, bound in zip(ENDS, members, strict=True))
    elif all(isinstance(member, str) for member in members):
        yield name, ", ".join(members)
