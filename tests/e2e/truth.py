"""The metrics once more, from their published definitions and without any of the service's code.

Deliberately naive: fractions, `statistics` and scipy's Wasserstein distance over lists of plain scores.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from statistics import fmean, pstdev
from typing import Any

import pytest

Json = dict[str, Any]

METRICS = ("mean", "acc", "rc", "acc_atom", "ic_atom", "rc_atom")
STATUSES = ("scored", "not_applicable", "refused", "unparsed", "failed")
GROUPINGS = (
    ("model",),
    ("model", "task"),
    ("model", "level"),
    ("model", "dimension"),
    ("model", "task", "level"),
    ("model", "task", "dimension"),
    ("model", "level", "dimension"),
    ("model", "persona", "dimension", "level"),
)


@dataclass(frozen=True)
class Scale:
    """Scores from `low` to `high`, cut into `levels` equal parts of which `target` is the persona's."""

    low: int
    high: int
    levels: int
    target: int

    def in_level(self, score: Fraction) -> bool:
        part = Fraction(self.high - self.low, self.levels)
        lower = self.low + self.target * part
        last = self.target == self.levels - 1
        return lower <= score and (last or score < lower + part)


@dataclass(frozen=True)
class Text:
    """A response: its run, the run's instruction, and what one judge made of its sentences."""

    run: int
    instruction: int
    scores: Sequence[int] = ()
    left_out: Counter[str] = field(default_factory=Counter)


def cell_truth(texts: Sequence[Text], scale: Scale) -> Json:
    """What a cell's results have to say, by one judge."""
    width = scale.high - scale.low
    judged = [text for text in texts if text.scores or text.left_out.total()]  # not those without a sentence
    scored = [text for text in judged if text.scores]
    means = [(text.run, fmean(text.scores)) for text in scored]
    run_means = _by_run(means)
    merged = _merge(scored)
    pairs = {
        (first, second): _retest(merged[first][1], merged[second][1], width)
        for first, second in combinations(sorted(merged), 2)
    }
    same = {pair: merged[pair[0]][0] == merged[pair[1]][0] for pair in pairs}
    return {
        "metrics": {
            "mean": _averaged(run_means),
            "acc": _averaged(
                _by_run(
                    (t.run, float(scale.in_level(Fraction(sum(t.scores), len(t.scores))))) for t in scored
                )
            ),
            "rc": {"value": 1 - 2 * pstdev(run_means) / width, "n": len(run_means)}
            if len(run_means) > 1
            else {"value": None, "n": 0},
            "acc_atom": _averaged(
                _by_run((t.run, fmean(scale.in_level(Fraction(s)) for s in t.scores)) for t in scored)
            ),
            "ic_atom": _averaged(
                _by_run((t.run, 1 - 2 * pstdev(t.scores) / width) for t in scored if len(t.scores) > 1)
            ),
            "rc_atom": _averaged(list(pairs.values()))
            | _part("within_instruction", [value for pair, value in pairs.items() if same[pair]])
            | _part("across_instructions", [value for pair, value in pairs.items() if not same[pair]]),
        },
        "units": _units(texts),
        "responses": {
            "total": len(judged),
            "without_scored_unit": sum(not text.scores for text in judged),
            "with_one_scored_unit": sum(len(text.scores) == 1 for text in texts),
        },
        "runs_used": len(merged),
        "scores": {
            str(score): sum(list(text.scores).count(score) for text in scored)
            for score in range(scale.low, scale.high + 1)
        },
    }


def over_judges(judges: Sequence[Json]) -> Json:
    """A cell judged by several judges, each alone: their mean, the smallest n, all judgements counted."""

    def mean_of(found: Sequence[Json], value: str, n: str) -> Json:
        there = [metric for metric in found if metric[value] is not None]
        return {
            value: fmean(metric[value] for metric in there) if there else None,
            n: min(metric[n] for metric in there) if there else 0,
        }

    metrics: Json = {}
    for name in METRICS:
        found = [judge["metrics"][name] for judge in judges]
        metrics[name] = mean_of(found, "value", "n")
        if name == "rc_atom":
            for part in ("within_instruction", "across_instructions"):
                metrics[name] |= mean_of(found, part, f"{part}_n")
    added = {
        name: {key: sum(judge[name][key] for judge in judges) for key in judges[0][name]}
        for name in ("units", "responses", "scores")
    }
    return {"metrics": metrics, **added, "runs_used": min(judge["runs_used"] for judge in judges)}


def totals_truth(cells: Sequence[Json]) -> list[Json]:
    """Unweighted means over the cells of each group of each grouping; each n counts cells."""
    totals: list[Json] = []
    for by in GROUPINGS:
        groups: dict[tuple[str, ...], list[Json]] = {}
        for cell in cells:
            groups.setdefault(tuple(cell[key] for key in by), []).append(cell)
        for keys in sorted(groups):
            found = groups[keys]
            metrics = {
                name: _averaged(_values(cell["metrics"][name]["value"] for cell in found)) for name in METRICS
            }
            for name in METRICS:
                metrics[name]["left_out"] = len(found) - metrics[name]["n"]
            for part in ("within_instruction", "across_instructions"):
                values = _values(cell["metrics"]["rc_atom"][part] for cell in found)
                metrics["rc_atom"] |= _part(part, values)
            units = {name: sum(cell["units"][name] for cell in found) for name in found[0]["units"]}
            totals.append(
                {"by": list(by), **dict(zip(by, keys, strict=True)), "cells": len(found)}
                | {"metrics": metrics, "units": units}
            )
    return totals


def assert_agrees(found: Any, truth: Any, where: str = "") -> None:
    """Asserts that everything the truth says was found, numbers to 1e-9; more may have been found."""
    if isinstance(truth, dict):
        for key, value in truth.items():
            assert_agrees(found[key], value, f"{where}/{key}")
    elif isinstance(truth, list):
        assert len(found) == len(truth), where
        for index, value in enumerate(truth):
            assert_agrees(found[index], value, f"{where}/{index}")
    elif isinstance(truth, float):
        assert found == pytest.approx(truth, rel=0, abs=1e-9), where
    else:
        assert found == truth, where


def _by_run(values: Iterable[tuple[int, float]]) -> list[float]:
    runs: dict[int, list[float]] = {}
    for run, value in values:
        runs.setdefault(run, []).append(value)
    return [fmean(found) for found in runs.values()]


def _merge(scored: Sequence[Text]) -> dict[int, tuple[int, list[int]]]:
    """Instruction and all scores of each run."""
    runs: dict[int, tuple[int, list[int]]] = {}
    for text in scored:
        runs.setdefault(text.run, (text.instruction, []))[1].extend(text.scores)
    return runs


def _retest(first: Sequence[int], second: Sequence[int], width: int) -> float:
    from scipy.stats import wasserstein_distance

    return float((1 - wasserstein_distance(first, second) / width) * 2 - 1)


def _averaged(values: Sequence[float]) -> Json:
    return {"value": fmean(values) if values else None, "n": len(values)}


def _part(name: str, values: Sequence[float]) -> Json:
    return {name: fmean(values) if values else None, f"{name}_n": len(values)}


def _values(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _units(texts: Sequence[Text]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for text in texts:
        counts += text.left_out
        counts["scored"] += len(text.scores)
    return {"total": counts.total()} | {status: counts[status] for status in STATUSES}
