"""Writes each test file's CPU and wall time to build/test-costs.json, the dearest first: ``make test-costs``.

CPU time includes child processes that have ended. What a session shares counts for the first file that needs it.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

COSTS = Path(__file__).parents[1] / "build" / "test-costs.json"
SHOWN = 15

_costs: defaultdict[str, dict[str, float]] = defaultdict(lambda: {"cpu": 0.0, "wall": 0.0, "tests": 0})


def _cpu() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Adds a test's time, with its fixtures', to its file's."""
    cpu, wall = _cpu(), time.perf_counter()
    result = yield
    cost = _costs[item.location[0]]
    cost["cpu"] += _cpu() - cpu
    cost["wall"] += time.perf_counter() - wall
    cost["tests"] += 1
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes all files' times and shows the greatest."""
    dearest = sorted(_costs.items(), key=lambda item: -item[1]["cpu"])
    COSTS.parent.mkdir(exist_ok=True)
    COSTS.write_text(json.dumps(dict(dearest), indent=1) + "\n", "utf-8")
    total = {name: sum(cost[name] for _, cost in dearest) for name in ("cpu", "wall", "tests")}
    terminalreporter.section(f"CPU and wall time by file, all in {COSTS}")
    for file, cost in [("all files", total), *dearest[:SHOWN]]:
        terminalreporter.write_line(f"{cost['cpu']:8.1f} s {cost['wall']:8.1f} s {cost['tests']:6} {file}")
