"""Whether a model has drifted or its judge: the model's figure beside that of anchors, texts that are frozen and judged again.

What moves on frozen texts is the judge's doing. A judge that moves moves the model's figure as well, so the model is tested by what is
left: its figure minus the anchors'. The anchors are a sample, and the judge may move a little more or less on them than on other texts.
So the model's series begins anew where the judge has changed; and of a model that changes at the same run it is asked whether the
figure has moved beyond what the anchors' personas leave open. Few personas hardly tell how much that is: the rest may then be the
judge's as well.
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


FEWEST_PERSONAS = 4
"""Of fewer anchors' personas the spread is too uncertain to say that what moves beside them is the model."""


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
    """From which run on each series is compared: those before are from before its last change.

    Attributes:
        value: Of the model's.
        anchor: Of the anchors'.
        value_earlier: Where the model's began before that change.
        anchor_earlier: Where the anchors' did.
    """

    value: int = 0
    anchor: int = 0
    value_earlier: int = 0
    anchor_earlier: int = 0


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
    own, earlier = runs[since.value :], runs[since.value_earlier : since.value]
    if runs[-1].anchor is None:
        found = newest_change(_values(own), hazard(runs_a_year, 1), floor, _values(earlier))
        return [] if found is None else [Drift(Cause.UNKNOWN, _moved(found, since.value))]
    chance = hazard(runs_a_year, 2)
    judged = _anchors(runs[since.anchor_earlier : since.anchor])
    judge = newest_change(_anchors(runs[since.anchor :]), chance, floor, judged)
    if judge is not None:
        judge = _moved(judge, since.anchor)
        rest = _beside_judge(own, judge.first - since.value, floor)
        beside = [] if rest is None else [Drift(rest.cause, _moved(rest.change, since.value))]
        return [Drift(Cause.JUDGE, judge), *beside]
    model = newest_change(_beyond_anchors(own), chance, floor, _beyond_anchors(earlier))
    return [] if model is None else [Drift(Cause.MODEL, _moved(model, since.value))]


def references_after(since: References, cause: Cause, first: int) -> References:
    """From where the series go on after a change whose first run this is."""
    after = since
    if first > since.value:
        after = replace(after, value=first, value_earlier=since.value)
    if cause is Cause.JUDGE:
        after = replace(after, anchor=first, anchor_earlier=since.anchor)
    return after


class RunLimits(NamedTuple):
    """Limits for a run's figures; ``None`` while there are too few runs."""

    value: tuple[float, float] | None = None
    anchor: tuple[float, float] | None = None


def next_limits(
    runs: Sequence[Measured], since: References, runs_a_year: float, floor: float, anchor: float | None
) -> RunLimits:
    """The limits for a run after these; of the model's figure for a run whose anchors have the figure ``anchor``."""
    chance = hazard(runs_a_year, 1 if anchor is None else 2)
    own, earlier = runs[since.value :], runs[since.value_earlier : since.value]
    if anchor is None:
        return RunLimits(limits(_values(own), chance, floor, _values(earlier)))
    beyond = limits(_beyond_anchors(own), chance, floor, _beyond_anchors(earlier))
    judged = _anchors(runs[since.anchor_earlier : since.anchor])
    return RunLimits(
        None if beyond is None else (beyond[0] + anchor, beyond[1] + anchor),
        limits(_anchors(runs[since.anchor :]), chance, floor, judged),
    )


def _beside_judge(runs: Sequence[Measured], first: int, floor: float) -> Drift | None:
    """How the figure has moved beside the anchors from the run on at which the judge has, if it is more than these leave open."""
    if first < 2:  # noqa: PLR2004 - a spread takes two
        return None
    change = shift_at(_beyond_anchors(runs), first, floor)
    shifts = _shifts(runs, first)
    if len(shifts) > 1:
        change = _widened(change, float(np.std(shifts, ddof=1)) / math.sqrt(len(shifts)), len(shifts) - 1)
    if abs(change.shift) <= two_sided(change.degrees, _BOTH_CHANCE) * change.error:
        return None
    return Drift(Cause.MODEL if len(shifts) >= FEWEST_PERSONAS else Cause.UNKNOWN, change)


def _shifts(runs: Sequence[Measured], first: int) -> list[float]:
    """How far the judge has moved on each persona's anchors."""
    before, after = _by_persona(runs[:first]), _by_persona(runs[first:])
    return [after[persona] - before[persona] for persona in before.keys() & after.keys()]


def _widened(change: Change, error: float, degrees: int) -> Change:
    """A change with a further error of its own degrees of freedom; both together have Welch and Satterthwaite's, rounded down."""
    both = math.hypot(change.error, error)
    shared = change.error**4 / change.degrees + error**4 / degrees
    return replace(change, error=both, degrees=max(1, int(both**4 / shared)))


def _by_persona(runs: Sequence[Measured]) -> dict[str, float]:
    """The anchors' mean figure of each persona, over the runs in which it has one."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for persona, value in run.anchors.items():
            found.setdefault(persona, []).append(value)
    return {persona: fmean(values) for persona, values in found.items()}


def _values(runs: Sequence[Measured]) -> list[float]:
    return [run.value for run in runs]


def _anchors(runs: Sequence[Measured]) -> list[float]:
    return [run.anchor for run in runs if run.anchor is not None]


def _beyond_anchors(runs: Sequence[Measured]) -> list[float]:
    return [run.value - run.anchor for run in runs if run.anchor is not None]


def _moved(change: Change, by: int) -> Change:
    return replace(change, first=change.first + by)
