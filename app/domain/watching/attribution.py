"""Whether a model has drifted or its judge: the model's figure beside that of anchors, texts that are frozen and judged again.

What moves on frozen texts is the judge's doing. A judge that moves moves the model's figure as well, so the model is tested by what is
left: its figure minus the anchors'. The anchors are a sample, and the judge may move a little more or less on them than on other texts.
So the model's series begins anew where the judge has changed; and of a model that changes at the same run it is asked whether the
figure has moved beyond what the anchors' personas leave open. Where these do not tell how much that is, as there is one persona only,
the rest may be the judge's as well.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import fmean
from typing import NamedTuple

import numpy as np

from app.domain.watching.drift import Change, hazard, limits, newest_change, shift_at, two_sided

_BOTH_CHANCE = 0.01
"""The probability that a model is said to have changed with its judge when it has not."""


class Cause(StrEnum):
    """What has drifted."""

    MODEL = "model"
    JUDGE = "judge"
    UNKNOWN = "model_or_judge"


@dataclass(frozen=True, slots=True)
class Measured:
    """A run's figures.

    Attributes:
        value: The model's.
        anchor: The anchors'; ``None`` in a schedule without them.
        anchors: The anchors' by persona.
    """

    value: float
    anchor: float | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drift:
    """A change and what has caused it."""

    cause: Cause
    change: Change


@dataclass(frozen=True, slots=True)
class References:
    """From which run on each series is compared: those before are from before its last change."""

    value: int = 0
    anchor: int = 0


def newest_drift(
    runs: Sequence[Measured], since: References, runs_a_year: float, floor: float
) -> list[Drift]:
    """What the newest run gives evidence of; the changes' places are counted from the first run.

    Args:
        runs: All of one design, the newest last; all with anchors or none.
        since: From which run on each series is compared.
        runs_a_year: How often the schedule is due.
        floor: Standard deviation that a figure has at least.
    """
    if runs[-1].anchor is None:
        found = newest_change([run.value for run in runs[since.value :]], hazard(runs_a_year, 1), floor)
        return [] if found is None else [Drift(Cause.UNKNOWN, _moved(found, since.value))]
    chance = hazard(runs_a_year, 2)
    judge = newest_change(_anchors(runs[since.anchor :]), chance, floor)
    if judge is not None:
        judge = _moved(judge, since.anchor)
        rest = _beside_judge(runs[since.value :], judge.first - since.value, floor)
        beside = [] if rest is None else [Drift(rest.cause, _moved(rest.change, since.value))]
        return [Drift(Cause.JUDGE, judge), *beside]
    model = newest_change(_beyond_anchors(runs[since.value :]), chance, floor)
    return [] if model is None else [Drift(Cause.MODEL, _moved(model, since.value))]


def references_after(since: References, cause: Cause, first: int) -> References:
    """From where the series go on after a change whose first run this is."""
    if cause is Cause.JUDGE:
        return References(max(since.value, first), first)
    return References(first, since.anchor)


class RunLimits(NamedTuple):
    """Limits for a run's figures; ``None`` while there are too few runs."""

    value: tuple[float, float] | None = None
    anchor: tuple[float, float] | None = None


def next_limits(
    runs: Sequence[Measured], since: References, runs_a_year: float, floor: float, anchor: float | None
) -> RunLimits:
    """The limits for a run after these; of the model's figure for a run whose anchors have the figure ``anchor``."""
    chance = hazard(runs_a_year, 1 if anchor is None else 2)
    own = runs[since.value :]
    if anchor is None:
        return RunLimits(limits([run.value for run in own], chance, floor))
    beyond = limits(_beyond_anchors(own), chance, floor)
    return RunLimits(
        None if beyond is None else (beyond[0] + anchor, beyond[1] + anchor),
        limits(_anchors(runs[since.anchor :]), chance, floor),
    )


def _beside_judge(runs: Sequence[Measured], first: int, floor: float) -> Drift | None:
    """How the figure has moved beside the anchors from the run on at which the judge has, if it is more than these leave open."""
    if first < 2:  # noqa: PLR2004 - a spread takes two
        return None
    change = shift_at(_beyond_anchors(runs), first, floor)
    left = _left_open(runs, first)
    if left is not None:
        # The smaller number of degrees of freedom never makes the test too eager, however few personas there are.
        error, degrees = math.hypot(change.error, left[0]), min(change.degrees, left[1])
        change = replace(change, error=error, degrees=degrees)
    if abs(change.shift) <= two_sided(change.degrees, _BOTH_CHANCE) * change.error:
        return None
    return Drift(Cause.UNKNOWN if left is None else Cause.MODEL, change)


def _left_open(runs: Sequence[Measured], first: int) -> tuple[float, int] | None:
    """Standard error, over personas like these, of how far the judge has moved, and its degrees of freedom; ``None`` if unknown."""
    before, after = _by_persona(runs[:first]), _by_persona(runs[first:])
    shifts = [after[persona] - before[persona] for persona in before.keys() & after.keys()]
    if len(shifts) < 2:  # noqa: PLR2004 - a spread takes two
        return None
    return float(np.std(shifts, ddof=1)) / math.sqrt(len(shifts)), len(shifts) - 1


def _by_persona(runs: Sequence[Measured]) -> dict[str, float]:
    """The anchors' mean figure of each persona, over the runs in which it has one."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for persona, value in run.anchors.items():
            found.setdefault(persona, []).append(value)
    return {persona: fmean(values) for persona, values in found.items()}


def _anchors(runs: Sequence[Measured]) -> list[float]:
    return [run.anchor for run in runs if run.anchor is not None]


def _beyond_anchors(runs: Sequence[Measured]) -> list[float]:
    return [run.value - run.anchor for run in runs if run.anchor is not None]


def _moved(change: Change, by: int) -> Change:
    return replace(change, first=change.first + by)
