"""A bridge's totals as a page shows them, their changes on one axis: as shares of each figure's range."""

from dataclasses import dataclass

from app.domain.metrics.registry import range_of
from app.domain.personagym.scores import SCORES
from app.domain.results.bridge import Bridge, BridgedFigure

_MOST = 3.0
"""Margins that the axis shows at least on either side."""


@dataclass(frozen=True, slots=True)
class BridgedRow:
    """A total as a page shows it.

    Attributes:
        figure: The total.
        of: Of which texts it is; empty for all.
        point: Where its change lies on the axis, 0 to 100; ``None`` without one.
        ends: Where its interval lies; ``None`` without one.
    """

    figure: BridgedFigure
    of: str
    point: float | None
    ends: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class BridgePicture:
    """All totals of a bridge.

    Attributes:
        rows: Those of all texts, of each model and of each task.
        margin: Where the margin begins and ends on the axis.
        zero: Where no change lies.
    """

    rows: list[BridgedRow]
    margin: tuple[float, float]
    zero: float


def bridge_picture(found: Bridge) -> BridgePicture:
    """The figures of a bridge on one axis."""
    scale = found.agreement[0].scale if found.agreement else {"minimum": 1, "maximum": 5}
    shares = [_shares(figure, (scale["minimum"], scale["maximum"])) for figure in found.figures]
    most = max([_MOST * found.within, *(abs(share) for each in shares for share in each)]) * 1.05

    def place(share: float) -> float:
        return round(50 + 50 * share / most, 2)

    rows = [
        BridgedRow(
            figure,
            next(iter(figure.group.values()), ""),
            place(each[0]) if each else None,
            (place(each[1]), place(each[2])) if len(each) > 1 else None,
        )
        for figure, each in zip(found.figures, shares, strict=True)
    ]
    return BridgePicture(rows, (place(-found.within), place(found.within)), place(0.0))


def _shares(figure: BridgedFigure, scale: tuple[float, float]) -> list[float]:
    """The change and the ends of its interval, as shares of the figure's range."""
    low, high = SCORES if figure.metric == "persona_score" else range_of(figure.metric, scale)
    effect = figure.effect
    return (
        [] if effect.value is None else [each / (high - low) for each in (effect.value, *(effect.ci95 or ()))]
    )
