"""The comparison: tools take turns, and what each takes is reckoned by call and as a multiple of what ours takes."""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.judging import Given
from benchmarks.peers.tools import NotMeasuredError, Parts, Tool
from benchmarks.stub_server import take_account

OURS = "this service"


@dataclass
class Contestant:
    """A tool in the comparison.

    Attributes:
        name: How the table shows it.
        sizes: Calls of the small run and of the large one.
        goal: How many times our CPU time it shall take at least.
        open: Makes the tool ready.
        costs: CPU seconds of a call by process, of each repetition.
        problem: Why there is nothing to tell.
    """

    name: str
    sizes: tuple[int, int]
    goal: float | None
    open: Callable[[], AbstractContextManager[Tool]]
    costs: list[Parts] = field(default_factory=list)
    problem: str | None = None

    @property
    def totals(self) -> list[float]:
        """CPU seconds of a call of all its processes, of each repetition."""
        return [sum(parts.values()) for parts in self.costs]

    @property
    def of_workers(self) -> list[float]:
        """CPU seconds of a call of its worker processes alone, of each repetition."""
        return [
            sum(cost for part, cost in parts.items() if part.startswith("worker")) for parts in self.costs
        ]


def take_turns(contestants: Sequence[Contestant], url: str, repetitions: int) -> None:
    """Measures all, each once a repetition."""
    with ExitStack() as stack:
        tools: dict[str, Tool] = {}
        for contestant in contestants:
            try:
                tool = stack.enter_context(contestant.open())
                # What is loaded and connected once, where a tool stays, belongs to its start.
                run_checked(tool, Given(contestant.sizes[0], "warming"), url)
                tools[contestant.name] = tool
            except NotMeasuredError as error:
                contestant.problem = str(error)
        for repetition in range(repetitions):
            for contestant in contestants:
                if contestant.problem is None:
                    _measure(contestant, tools[contestant.name], repetition, url)


def _measure(contestant: Contestant, tool: Tool, repetition: int, url: str) -> None:
    try:
        small, large = (run_checked(tool, Given(n, f"{repetition} of {n}"), url) for n in contestant.sizes)
    except NotMeasuredError as error:
        contestant.problem = str(error)
        return
    more = contestant.sizes[1] - contestant.sizes[0]
    contestant.costs.append({part: (large[part] - small[part]) / more for part in large})
    print(f"{contestant.name}: {contestant.totals[-1] * 1e6:,.0f} µs", file=sys.stderr, flush=True)


def run_checked(tool: Tool, given: Given, url: str) -> Parts:
    """What a run takes, if each prompt was asked once, byte for byte.

    Raises:
        NotMeasuredError: If the tool does not run, or its prompts were others.
    """
    take_account(url)
    used = tool.run(given)
    asked = take_account(url)
    if asked != given.account:
        raise NotMeasuredError(f"the server was asked {asked}, not {given.account}")
    return used


def figures(contestants: Sequence[Contestant]) -> dict[str, dict[str, Any]]:
    """What was measured, by tool: microseconds of CPU time a call, and how many times ours, and our workers' alone, that is."""
    ours = next((c for c in contestants if c.name == OURS and c.costs), None)
    return {c.name: _figures_of(c, ours) for c in contestants}


def _figures_of(contestant: Contestant, ours: Contestant | None) -> dict[str, Any]:
    if contestant.problem is not None or not contestant.costs:
        return {"not_measured": contestant.problem, "goal": contestant.goal}
    totals = contestant.totals
    parts = {
        part: round(median(costs[part] for costs in contestant.costs) * 1e6) for part in contestant.costs[0]
    }
    return {
        "calls": contestant.sizes,
        "cpu_us_per_call": round(median(totals) * 1e6),
        "lowest": round(min(totals) * 1e6),
        "highest": round(max(totals) * 1e6),
        "by_process": parts,
        "times_ours": _times(totals, ours.totals) if ours else None,
        "times_our_workers": _times(totals, ours.of_workers) if ours else None,
        "goal": contestant.goal,
    }


def _times(costs: Sequence[float], ours: Sequence[float]) -> float | None:
    """How many times ours; ``None`` where so few calls took ours less than the kernel's clock tells."""
    cost = median(ours)
    return round(median(costs) / cost, 2) if cost > 0 else None


def print_table(tools: dict[str, dict[str, Any]]) -> None:
    """The ratios, for people, on standard error."""
    table = Table("tool", "CPU µs a call", "lowest–highest", "times ours", "times our workers", "goal")
    for name, found in tools.items():
        goal = f"≥ {found['goal']:g}" if found["goal"] else ""
        if "not_measured" in found:
            table.add_row(name, "not measured", found["not_measured"], "", "", goal)
        else:
            span = f"{found['lowest']:,}–{found['highest']:,}"
            ratios = (str(found["times_ours"]), str(found["times_our_workers"]))
            table.add_row(name, f"{found['cpu_us_per_call']:,}", span, *ratios, goal)
    Console(stderr=True).print(table)
