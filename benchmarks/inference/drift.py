"""How often schedules raise false alarms in a year, and how soon they find drift of the model, of the judge or of both.

`python -m benchmarks.inference.drift [years]`. Daily runs of simulated figures: the model's varies by 0.01 from run to run, the anchors'
by 0.003 for the judge's whims. A judge who moves does so by persona, with a third of the shift as standard deviation, so that the
anchors' mean is not quite the other texts'.
"""

import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from app.domain.metrics.metric import FloatArray
from app.domain.watching.attribution import Cause, Measured, References, newest_drift, references_after

RUNS, CHANGE, FOLLOWED = 365, 60, 60
"""Runs of a year; before a change; and after it, within which it shall be found."""
MODEL_SD, ANCHOR_SD = 0.01, 0.003
DAILY, FLOOR = 365.25, 0.002


@dataclass(frozen=True)
class World:
    """What is simulated.

    Attributes:
        name: What is said of it.
        noise: Of the runs: `normal`, `t3`, `odd` (one run in 33 lies 8 standard deviations off), `ar` (lag-1 correlation 0.4).
        model: How far the model moves, in its runs' standard deviations.
        judge: The same of the judge.
        judge_at: Runs after the model's change at which the judge's is.
        personas: Of the anchors.
        anchored: Whether there are anchors.
        missing: The share of runs that have no figure.
        anchor_sd: How far the anchors' figure varies from run to run.
    """

    name: str
    noise: str = "normal"
    model: float = 0.0
    judge: float = 0.0
    judge_at: int = 0
    personas: int = 15
    anchored: bool = True
    missing: float = 0.0
    anchor_sd: float = ANCHOR_SD


QUIET = (
    World("normal"),
    World("Student's t, 3 degrees", noise="t3"),
    World("one run in 33 far off", noise="odd"),
    World("lag-1 correlation 0.4", noise="ar"),
    World("five personas", personas=5),
    World("a fifth of the runs missing", missing=0.2),
    World("a judge without whims", anchor_sd=0.0),
    World("no anchors", anchored=False),
)
MOVED = (
    World("model, 1 sd", model=-1),
    World("model, 2 sd", model=-2),
    World("model, 4 sd", model=-4),
    World("judge, 2 sd", judge=2),
    World("judge, 4 sd", judge=4),
    World("both at once, alike", model=4, judge=4),
    World("both at once, against each other", model=-4, judge=4),
    World("judge 30 runs after the model", model=-4, judge=4, judge_at=30),
    World("no anchors, model, 4 sd", model=-4, anchored=False),
)
HARD = ("t3", "odd", "ar")


def main() -> None:
    """Prints one JSON object a line."""
    years = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    draws = np.random.default_rng(0)
    for world in QUIET:
        print(json.dumps(quiet(world, draws, years)), flush=True)
    for world in MOVED:
        print(json.dumps(moved(world, draws, years)), flush=True)
    for base in (MOVED[2], MOVED[4]):
        for noise in HARD:
            name = f"{base.name}; {noise}"
            print(json.dumps(moved(replace(base, name=name, noise=noise), draws, years)), flush=True)
        few = replace(base, name=f"{base.name}; five personas", personas=5)
        gaps = replace(base, name=f"{base.name}; a fifth missing", missing=0.2)
        for world in (few, gaps):
            print(json.dumps(moved(world, draws, years)), flush=True)


def quiet(world: World, draws: np.random.Generator, years: int) -> dict[str, object]:
    """The share of years without any change that have an alarm."""
    found = [alarms(*simulated(world, draws, RUNS)) for _ in range(years)]
    return {"unchanged": world.name, "years": years, "false_alarms": sum(map(bool, found)) / years}


def moved(world: World, draws: np.random.Generator, years: int) -> dict[str, object]:
    """What is said of a change, and after how many runs; the year's other alarms are wrong."""
    wanted = (
        {cause for cause, size in ((Cause.MODEL, world.model), (Cause.JUDGE, world.judge)) if size}
        if world.anchored
        else {Cause.UNKNOWN}
    )
    counts: Counter[str] = Counter()
    delays: dict[Cause, list[int]] = {cause: [] for cause in sorted(wanted)}
    for _ in range(years):
        told = alarms(*simulated(world, draws, CHANGE + world.judge_at + FOLLOWED))
        first = {cause: run for run, cause in reversed(told)}
        for cause in wanted & first.keys():
            at = CHANGE + (world.judge_at if cause is Cause.JUDGE else 0)
            delays[cause].append(first[cause] - at)
        causes = set(first)
        counts["right"] += causes == wanted
        counts["in_part"] += bool(causes) and causes < wanted
        counts["wrong_cause"] += bool(causes - wanted)
        counts["not_found"] += not causes
    shares = {name: counts[name] / years for name in ("right", "in_part", "wrong_cause", "not_found")}
    return {
        "changed": world.name,
        **shares,
        "days_until_told": {cause.value: median(found) if found else None for cause, found in delays.items()},
    }


def alarms(days: list[int], runs: list[Measured]) -> list[tuple[int, Cause]]:
    """After how many days there is each alarm, and what it says."""
    since, found = References(), []
    for count in range(1, len(runs) + 1):
        for drift in newest_drift(runs[:count], since, DAILY, FLOOR):
            found.append((days[count - 1] + 1, drift.cause))
            since = references_after(since, drift.cause, drift.change.first)
    return found


def simulated(world: World, draws: np.random.Generator, count: int) -> tuple[list[int], list[Measured]]:
    """A schedule's runs that have figures, and the day of each."""
    model = MODEL_SD * (_noise(world.noise, draws, count) + world.model * (np.arange(count) >= CHANGE))
    shift = MODEL_SD * world.judge
    by_persona = draws.normal(shift, abs(shift) / 3, world.personas)
    whims = world.anchor_sd * _noise(world.noise, draws, count)
    days, found = [], []
    for run in range(count):
        judged = run >= CHANGE + world.judge_at
        value = 0.7 + float(model[run]) + shift * judged + float(whims[run])
        own = 0.7 + by_persona * judged + float(whims[run])
        if draws.random() >= world.missing:
            days.append(run)
            found.append(
                Measured(value, float(own.mean()), {f"{n}": float(one) for n, one in enumerate(own)})
                if world.anchored
                else Measured(value)
            )
    return days, found


def _noise(kind: str, draws: np.random.Generator, count: int) -> FloatArray:
    """Of variance 1, but for the odd runs."""
    steps = draws.normal(size=count)
    if kind == "t3":
        heavy: FloatArray = draws.standard_t(3, size=count) / np.sqrt(3)
        return heavy
    if kind == "odd":
        return steps + (draws.random(count) < 1 / 33) * draws.normal(0, 8, count)
    if kind == "ar":
        for run in range(1, count):
            steps[run] = 0.4 * steps[run - 1] + np.sqrt(1 - 0.4**2) * steps[run]
    return steps


if __name__ == "__main__":
    main()
