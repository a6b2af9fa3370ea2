"""Whether a model has drifted or its judge: the model's figure beside that of anchors, texts that are frozen and judged again.

What moves on frozen texts is the judge's doing. A judge that moves moves the model's figure as well, so the model is tested by what is
left: its figure minus the anchors'. The anchors are a sample, and the judge may move a little more or less on them than on other texts.
So the model's series begins anew where the judge has changed; and of a model that changes at the same run it is asked whether the
figure has moved beyond what the anchors' personas leave open.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
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
        anchors: The anchors' by persona, in the same order in each run.
    """

    value: float
    anchor: float | None = None
    anchors: tuple[float, ...] = ()


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
        both = _model_with_judge(runs, since, judge, floor)
        return [Drift(Cause.JUDGE, judge), *([] if both is None else [Drift(Cause.MODEL, both)])]
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


def _model_with_judge(
    runs: Sequence[Measured], since: References, judge: Change, floor: float
) -> Change | None:
    """The model's own change where the judge's is, if it is more than the anchors leave open."""
    first = judge.first - since.value
    if first < 2:  # noqa: PLR2004 - a spread takes two
        return None
    found = shift_at(_beyond_anchors(runs[since.value :]), first, floor)
    error = math.hypot(found.error, _open(runs, judge.first))
    if abs(found.shift) <= two_sided(found.degrees, _BOTH_CHANCE) * error:
        return None
    return _moved(Change(found.first, found.before, found.after, error, found.degrees), since.value)


def _open(runs: Sequence[Measured], first: int) -> float:
    """Standard error, over personas like these, of how far the judge has moved."""
    before = [run.anchors for run in runs[:first] if run.anchors]
    after = [run.anchors for run in runs[first:] if run.anchors]
    if not before or not after or len(before[0]) < 2:  # noqa: PLR2004 - a spread takes two
        return 0.0
    shifts = np.mean(after, axis=0) - np.mean(before, axis=0)
    return float(np.std(shifts, ddof=1)) / math.sqrt(len(shifts))


def _anchors(runs: Sequence[Measured]) -> list[float]:
    return [run.anchor for run in runs if run.anchor is not None]


def _beyond_anchors(runs: Sequence[Measured]) -> list[float]:
    return [run.value - run.anchor for run in runs if run.anchor is not None]


def _moved(change: Change, by: int) -> Change:
    return Change(change.first + by, change.before, change.after, change.error, change.degrees)
