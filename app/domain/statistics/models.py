"""Several models on the same cells: which of them differ, and which ranks each may have.

Every pair has the t of the design (:mod:`app.domain.statistics.design`). How small the smallest p of all pairs comes out where no two
models differ is drawn, with the noise and the degrees of freedom that these pairs have on average (the min P of Westfall and Young,
1993, section 2.3; of a single variance it would be Tukey's studentized range): so p-values, intervals and ranks hold for all pairs at
once. Where the design has no t, signs of personas are permuted, and Shaffer's (1986) form of Holm's correction stands in.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray
from app.domain.statistics.crossed import BEYOND_SCALE, joined
from app.domain.statistics.design import (
    Components,
    DesignCell,
    Error,
    Population,
    components,
    crossed,
    error,
    of_both,
    p_value,
)
from app.domain.statistics.paired import ALPHA, POWER, sign_flip_p_value, smallest_p_value
from app.domain.statistics.resampling import unanimous
from app.domain.statistics.variability import Variability

DRAWS = 10_000
"""The chance of a false alarm then lies within 0.2 points of 5 %."""
_AT_A_TIME = 1_000
_MOST_DEGREES = 60
"""With as many or more, Student's t is taken to have so many."""


class PairOfModels(NamedTuple):
    """Two models' difference, a − b.

    Attributes:
        a: The first model.
        b: The second.
        value: The mean difference.
        interval: Holds for all pairs at once.
        p: Of this pair alone; ``None`` where there is no test.
        corrected: For all pairs.
    """

    a: str
    b: str
    value: float
    interval: Interval
    p: float | None
    corrected: float | None

    @property
    def better(self) -> str | None:
        """The model shown to be the higher one; ``None`` where they cannot be told apart."""
        if self.corrected is None or self.corrected > ALPHA:
            return None
        return self.a if self.value > 0 else self.b


class ComparedModels(NamedTuple):
    """All pairs of models by one metric.

    Attributes:
        population: Of whom intervals and p-values speak.
        pairs: In the models' order.
        smallest_p: The smallest p that permutations of so few personas can give; ``None`` of Student's t.
        detectable: The difference of two models that another comparison of this size would find in 80 % of cases; ``None`` where there
            is none.
        detectable_reason: Why there is none, ``"code: words"``.
    """

    population: Population
    pairs: list[PairOfModels]
    smallest_p: float | None
    detectable: float | None
    detectable_reason: str | None


class _Difference(NamedTuple):
    """Two models' difference and how it varies; ``obstacle`` says why it shows nothing of the models, ``None`` if it does."""

    a: str
    b: str
    value: float
    cells: Sequence[DesignCell]
    components: Components
    obstacle: str | None


def compare_all(
    cells: Mapping[str, Sequence[DesignCell]],
    width: float,
    obstacles: Mapping[tuple[str, str], str] | None = None,
    metrics: int = 1,
) -> ComparedModels:
    """Compares each model with each other one.

    Args:
        cells: By model; the same places, in the same order, for all: at least one, of two models or more.
        width: The greatest difference that there can be.
        obstacles: Pairs, in the models' order, that show nothing of the models, and why.
        metrics: Metrics by which the models are compared, all of them one family.
    """
    found = [_difference(a, b, cells, (obstacles or {}).get((a, b))) for a, b in combinations(cells, 2)]
    clear = [each for each in found if each.obstacle is None]
    for population in (Population.BOTH, Population.PERSONAS):
        if clear and not any(isinstance(error(each.components, population), str) for each in clear):
            return _by_t(found, clear, population, len(cells), width, metrics)
    return _by_signs(found, len(cells), metrics)


def ranks(models: Sequence[str], pairs: Sequence[PairOfModels]) -> dict[str, tuple[int, int]]:
    """The best and the worst rank that each model may have (Mogstad, Romano, Shaikh and Wilhelm, 2024); 95 % for all at once."""
    best, worst = dict.fromkeys(models, 1), dict.fromkeys(models, len(models))
    for pair in pairs:
        if pair.better is not None:
            best[pair.b if pair.better == pair.a else pair.a] += 1
            worst[pair.better] -= 1
    return {model: (best[model], worst[model]) for model in models}


def shaffer(p_values: Sequence[float | None], models: int) -> list[float | None]:
    """Holm's correction for all pairs of ``models``: as soon as one pair differs, so must others, and fewer may be equal."""
    possible = _equal_pairs(models)
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(tested):
        remaining = len(p_values) - rank
        largest = max(largest, min(1.0, p * max(count for count in possible if count <= remaining)))
        found[place] = largest
    return found


@cache
def _equal_pairs(models: int) -> frozenset[int]:
    """How many pairs of so many models can be equal: those within sets of equal ones."""
    if models == 0:
        return frozenset({0})
    return frozenset(
        size * (size - 1) // 2 + rest for size in range(1, models + 1) for rest in _equal_pairs(models - size)
    )


def _difference(
    a: str, b: str, cells: Mapping[str, Sequence[DesignCell]], obstacle: str | None
) -> _Difference:
    own = [
        DesignCell(one.persona, one.stratum, _varied(one.figure, other.figure))
        for one, other in zip(cells[a], cells[b], strict=True)
    ]
    value = float(np.mean([cell.figure.value for cell in own]))
    return _Difference(a, b, value, own, components(own), obstacle)


def _varied(one: Variability, other: Variability) -> Variability:
    if one.dropped is None or other.dropped is None or one.dropped.keys() != other.dropped.keys():
        return Variability(one.value - other.value)
    dropped = {wording: effect - other.dropped[wording] for wording, effect in one.dropped.items()}
    return Variability(one.value - other.value, dropped, count=min(one.count, other.count))


def _by_t(
    found: Sequence[_Difference],
    clear: Sequence[_Difference],
    population: Population,
    models: int,
    width: float,
    metrics: int,
) -> ComparedModels:
    parts = _mean_parts([_parts(each.components, population) for each in clear])
    if all(part.none for part in parts):
        return _by_signs(found, models, metrics)
    equal = equal_models(models, parts)
    smallest = np.sort(equal.smallest_p)
    limit = float(smallest[int(ALPHA / metrics * (DRAWS + 1)) - 1])
    pairs = []
    for each in found:
        if each.obstacle is not None:
            pairs.append(_untested(each, each.obstacle))
            continue
        own = error(each.components, population)
        assert isinstance(own, Error)  # noqa: S101 - of these populations, all pairs' are known
        p = _p_of_signs(each) if own.none else p_value(each.value, own)
        at_least = int(np.searchsorted(smallest, p, side="right"))
        # So few draws do not tell how small a very small one is.
        corrected = min(1.0, metrics * max(p, (1 + at_least) / (DRAWS + 1)))
        pairs.append(
            PairOfModels(each.a, each.b, each.value, _interval(each.value, own, width, limit), p, corrected)
        )
    needed = equal.detectable(limit)
    beyond = needed > width
    return ComparedModels(
        population, pairs, None, None if beyond else needed, BEYOND_SCALE if beyond else None
    )


def _interval(value: float, found: Error, width: float, alpha: float) -> Interval:
    from scipy import special  # noqa: PLC0415 - its import takes a second, and who only reads results needs none

    if found.none:
        return unanimous(value, found.clusters, (-width, width), alpha)
    half = float(special.stdtrit(found.degrees, 1 - alpha / 2)) * found.variance**0.5
    return Interval.around(value, value - half, value + half, (-width, width))


def _by_signs(found: Sequence[_Difference], models: int, metrics: int) -> ComparedModels:
    """Where the design does not tell how personas vary."""
    p_values = [_p_of_signs(each) if each.obstacle is None else None for each in found]
    corrected = [None if p is None else min(1.0, p * metrics) for p in shaffer(p_values, models)]
    clear = [each.components.personas for each in found if each.obstacle is None]
    obstacles = [each.obstacle for each in found]
    reason = next(
        (each for each in (*clear, *obstacles) if isinstance(each, str)),
        "no_spread: all personas differ alike",
    )
    pairs = [
        _untested(each, each.obstacle or reason)._replace(p=p, corrected=of_all)
        for each, p, of_all in zip(found, p_values, corrected, strict=True)
    ]
    personas = len({cell.persona for cell in found[0].cells})
    smallest = smallest_p_value(personas) if any(p is not None for p in p_values) else None
    return ComparedModels(Population.PERSONAS, pairs, smallest, None, reason)


def _untested(each: _Difference, reason: str) -> PairOfModels:
    return PairOfModels(each.a, each.b, each.value, Interval.missing(reason), None, None)


def _p_of_signs(each: _Difference) -> float:
    sums: dict[str, float] = {}
    for cell in each.cells:
        sums[cell.persona] = sums.get(cell.persona, 0.0) + cell.figure.value
    return sign_flip_p_value(np.array([sums[persona] for persona in sorted(sums)]), seed=0)


def _parts(found: Components, population: Population) -> list[Error]:
    parts = of_both(found) if population is Population.BOTH else [found.personas]
    assert not isinstance(parts, str)  # noqa: S101 - as above
    return [part for part in parts if isinstance(part, Error)]


def _mean_parts(all_: Sequence[Sequence[Error]]) -> list[Error]:
    """A pair's on average."""
    return [
        Error(
            float(np.mean([part.variance for part in same])),
            float(np.mean([part.degrees for part in same])),
            min(part.clusters for part in same),
        )
        for same in zip(*all_, strict=True)
    ]


class EqualModels(NamedTuple):
    """Comparisons of equal models, drawn; each of shape (DRAWS,), of the first pair or, where it says so, of all.

    Attributes:
        smallest_p: The smallest p of all pairs.
        mean_variance: All pairs' mean, as a comparison estimates it, as shares of the true one.
        difference: In true standard errors.
        variance: As a share of the true one.
        degrees: Of freedom.
        error: The true standard error.
    """

    smallest_p: FloatArray
    mean_variance: FloatArray
    difference: FloatArray
    variance: FloatArray
    degrees: FloatArray
    error: float

    def detectable(self, alpha: float) -> float:
        """The difference, in units of the figure, that another comparison finds in 80 % of cases at this level.

        The noise is itself an estimate: this comparison's is drawn as well as the other's.
        """
        from scipy import special  # noqa: PLC0415 - as above

        # Degrees are rounded: few different quantiles, each of which takes its time.
        rounded, place = np.unique(np.round(self.degrees, 1), return_inverse=True)
        t = special.stdtrit(rounded, 1 - alpha / 2)[place]
        made = np.roll(self.mean_variance, 1)  # of a comparison that has nothing to do with the other
        needed = (t * np.sqrt(self.variance) - self.difference) / np.sqrt(made)
        return float(np.quantile(needed, POWER)) * self.error


def equal_models(models: int, parts: Sequence[Error]) -> EqualModels:
    """Draws comparisons of equal models.

    Args:
        models: How many.
        parts: What a pair's variance consists of: personas', wordings' and their interaction's, or personas' alone.
    """
    draws = np.random.default_rng(0)
    steps = [_step(draws, models, parts) for _ in range(DRAWS // _AT_A_TIME)]
    whole = crossed(*parts) if len(parts) > 1 else parts[0]
    smallest, mean, difference, own, degrees = (np.concatenate(same) for same in zip(*steps, strict=True))
    return EqualModels(smallest, mean, difference, own, degrees, whole.variance**0.5)


def _step(draws: np.random.Generator, models: int, parts: Sequence[Error]) -> tuple[FloatArray, ...]:
    from scipy import special  # noqa: PLC0415 - as above

    one, other = np.triu_indices(models, 1)
    true = (crossed(*parts) if len(parts) > 1 else parts[0]).variance
    degrees = [min(_MOST_DEGREES, max(1, round(part.degrees))) for part in parts]
    squares = np.stack(
        [
            part.variance / true * _squares(draws, models, count)[:, one, other]
            for part, count in zip(parts, degrees, strict=True)
        ],
        axis=-1,
    )
    mean = squares.mean(axis=1)
    freedom = np.broadcast_to(np.array(degrees, dtype=np.float64), squares.shape)
    if len(parts) > 1:
        variances, freedom = joined(squares, freedom)
        mean_variance, _ = joined(mean, np.ones_like(mean))
    else:
        variances, freedom, mean_variance = squares[..., 0], freedom[..., 0], mean[..., 0]
    means = draws.standard_normal((_AT_A_TIME, models)) / 2**0.5
    differences = means[:, one] - means[:, other]
    smallest = 2 * special.stdtr(freedom, -np.abs(differences) / np.sqrt(variances)).min(axis=1)
    return smallest, mean_variance, differences[:, 0], variances[:, 0], freedom[:, 0]


def _squares(draws: np.random.Generator, models: int, degrees: int) -> FloatArray:
    """Shape (…, models, models): mean squares of all pairs' differences, 1 on average, of equal models."""
    rows = draws.standard_normal((_AT_A_TIME, degrees, models))
    products = rows.transpose(0, 2, 1) @ rows
    own = np.einsum("dmm->dm", products)
    return np.asarray((own[:, :, None] + own[:, None, :] - 2 * products) / (2 * degrees))
