"""The papers' figures of a single response (atomic paper, Tables 1 and 17)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field

from app.domain.instruments.dimension import Dimension, Scale

_REMEMBERED = 20_000
"""Different scores of a response of which the figures are kept: short texts have few."""


@dataclass(frozen=True, slots=True)
class ResponseFigures:
    """One response on one dimension; of several judges, means over those that have the figure."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    dimension: str
    n: Annotated[
        int,
        Field(
            description="Scored sentences; of several judges, of the one with the fewest who has any. Without one there is no"
            " figure."
        ),
    ]
    mean: Annotated[float | None, Field(description="The mean of its sentences' scores.")]
    acc: Annotated[
        float | None,
        Field(description="1 if that lies in the persona's level, else 0; `null` without a persona."),
    ]
    acc_atom: Annotated[
        float | None, Field(description="The share of scored sentences in character; likewise.")
    ]
    ic_atom: Annotated[
        float | None, Field(description="Internal consistency; needs two scored sentences of a judge.")
    ]


class _OfJudge(NamedTuple):
    n: int
    mean: float
    acc: float | None
    acc_atom: float | None
    ic_atom: float | None


def response_figures(
    scores: Iterable[tuple[str, str, int | None]],
    dimensions: Sequence[Dimension],
    levels: Mapping[str, str],
) -> tuple[ResponseFigures, ...]:
    """A response's figures on each dimension on which it has verdicts.

    Args:
        scores: Dimension, judge and score of each verdict on its sentences.
        dimensions: Those of its job, in the order of the answer.
        levels: The persona's, by dimension; none in the control arm.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for dimension, judge, score in scores:
        of_judges = found.setdefault(dimension, {})
        own = of_judges.setdefault(judge, [])
        if score is not None:
            own.append(score)
    return tuple(
        _over_judges(
            each.id,
            [
                _of_judge(tuple(sorted(own)), each.scale, levels.get(each.id))
                for own in found[each.id].values()
                if own
            ],
        )
        for each in dimensions
        if each.id in found
    )


@lru_cache(_REMEMBERED)
def _of_judge(scores: tuple[int, ...], scale: Scale, level: str | None) -> _OfJudge:
    n, total = len(scores), sum(scores)
    # (n Σx² − (Σx)²) / n² is the variance, its numerator an integer: equal scores give exactly 0.
    spread = math.sqrt((n * sum(score * score for score in scores) - total**2) / n**2)
    known = level is not None
    return _OfJudge(
        n=n,
        mean=total / n,
        acc=float(scale.levels[scale.level_index(total, n)] == level) if known else None,
        acc_atom=sum(scale.level_of(score) == level for score in scores) / n if known else None,
        ic_atom=1 - 2 * spread / scale.width if n > 1 else None,
    )


def _over_judges(dimension: str, judges: Sequence[_OfJudge]) -> ResponseFigures:
    return ResponseFigures(
        dimension=dimension,
        n=min((judge.n for judge in judges), default=0),
        mean=_mean([judge.mean for judge in judges]),
        acc=_mean([judge.acc for judge in judges]),
        acc_atom=_mean([judge.acc_atom for judge in judges]),
        ic_atom=_mean([judge.ic_atom for judge in judges]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
