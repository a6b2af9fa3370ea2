"""How often a planned comparison of models would find a difference, and how many personas it takes.

By the tests that comparisons use: the t of the design (:mod:`app.domain.statistics.crossed`), and of two models over personas alone
the permutation of signs (:mod:`app.domain.statistics.paired`).
"""

import math
from bisect import bisect_left
from functools import cache
from typing import NamedTuple

import numpy as np

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.crossed import DRAWS, needed
from app.domain.statistics.design import FEWEST_WORDINGS, Error, Population
from app.domain.statistics.paired import ALPHA, EXACT_CLUSTERS, FEWEST_TESTED, smallest_p_value
from app.domain.statistics.resampling import FEWEST_CLUSTERS, student

MOST_PERSONAS = 1_000
_RANGES = 50_000
_DRAWS, _AT_A_TIME = 2_000, 200
"""Of samples of whose signs all patterns are tried."""
_LEAST = 10**-9


class Size(NamedTuple):
    """How large a comparison is.

    Attributes:
        personas: In all.
        levels: Among which they are shared out evenly.
        wordings: Persona instructions.
        iterations: Runs for each.
    """

    personas: int
    levels: int
    wordings: int
    iterations: int


class Noise(NamedTuple):
    """Standard deviations of two models' differences.

    Attributes:
        personas: Of personas on one level.
        wordings: Of wordings, the same for all personas.
        both: Of a wording's effect on one persona alone.
        runs: Of single runs.
        levels: Of levels, which are fixed: only the permutation of signs takes them for noise.
    """

    personas: float
    wordings: float
    both: float
    runs: float
    levels: float = 0.0


def power(
    noise: Noise, size: Size, population: Population, difference: float, models: int = 2
) -> float | str:
    """How often a comparison of this size finds a true difference, 0–1; or why it finds none, ``"code: words"``.

    Args:
        noise: What the difference varies with.
        size: Of the comparison.
        population: Over personas alone, or over both.
        difference: The true one of two of the models, above 0.
        models: How many are compared with each other at once.
    """
    by_signs = population is Population.PERSONAS and models == 2  # noqa: PLR2004 - a pair
    reason = _obstacle_to_signs(size) if by_signs else _obstacle_to_t(size, population)
    if reason is not None:
        return reason
    if by_signs:
        return _by_signs(noise, size, difference)
    parts = _expected(noise, size)[: 1 if population is Population.PERSONAS else None]
    if all(part.none for part in parts):
        return 1.0
    limits = needed(np.random.default_rng(0), parts, size.levels, level_of_pairs(models))
    return float((limits <= difference).mean())


@cache
def level_of_pairs(models: int) -> float:
    """The p-value that each pair must stay below so that, of equal models, one in twenty comparisons has any that does.

    That of many degrees of freedom, by Tukey's range. With few it may be up to half as large again, and the power somewhat higher.
    """
    if models == 2:  # noqa: PLR2004 - a pair
        return ALPHA
    draws = np.random.default_rng(0).standard_normal((_RANGES, models))
    return math.erfc(float(np.quantile(np.ptp(draws, axis=1), 1 - ALPHA)) / 2)


def with_enough_personas(
    noise: Noise, size: Size, population: Population, difference: float, wanted: float, models: int = 2
) -> Size | None:
    """The size with the fewest personas, as many on each level, that finds a difference often enough; ``None`` above 1,000."""
    choices = range(2 * size.levels if size.levels > 1 else FEWEST_CLUSTERS, MOST_PERSONAS + 1, size.levels)

    def enough(personas: int) -> bool:
        found = power(noise, size._replace(personas=personas), population, difference, models)
        return not isinstance(found, str) and found >= wanted

    place = bisect_left(choices, True, key=enough)
    return size._replace(personas=choices[place]) if place < len(choices) else None


def _obstacle_to_signs(size: Size) -> str | None:
    if size.personas >= FEWEST_TESTED:
        return None
    smallest = smallest_p_value(max(1, size.personas))
    counted = f"{size.personas} persona{'s' * (size.personas != 1)}"
    return f"too_few_personas: {counted} cannot give a p-value below {smallest:.2g}"


def _obstacle_to_t(size: Size, population: Population) -> str | None:
    if population is Population.BOTH and size.wordings < FEWEST_WORDINGS:
        return f"too_few_wordings: other wordings like these take {FEWEST_WORDINGS}"
    fewest = max(FEWEST_CLUSTERS, 2 * size.levels)
    if size.personas < fewest:
        return f"too_few_personas: {size.personas}; the comparison takes {fewest}, two on each level"
    return None


def _expected(noise: Noise, size: Size) -> tuple[Error, Error, Error]:
    """What the variances over personas, over wordings and of their interaction are on average."""
    both = _within(noise, size) / size.personas
    rows, columns = max(1, size.personas - size.levels), size.wordings - 1
    return (
        Error(noise.personas**2 / size.personas + both, rows, size.personas),
        Error(noise.wordings**2 / size.wordings + both, columns, size.wordings),
        Error(both, rows * columns, size.personas),
    )


def _within(noise: Noise, size: Size) -> float:
    """The variance of a persona's mean difference under these wordings about what it is under all."""
    return (noise.both**2 + noise.runs**2 / size.iterations) / size.wordings


def _by_signs(noise: Noise, size: Size, difference: float) -> float:
    """By the permutation of signs of personas' differences, which knows nothing of levels."""
    count = size.personas
    draws = np.random.default_rng(0)
    spread = max(_LEAST, math.sqrt(noise.personas**2 + _within(noise, size)))
    levels = noise.levels * _evenly_apart(size.levels)[np.arange(count) % size.levels]
    if count <= EXACT_CLUSTERS:
        values = difference + levels + spread * draws.standard_normal((_DRAWS, count))
        return float(np.mean([_found(some) for some in np.split(values, _DRAWS // _AT_A_TIME)]))
    # With more personas the test is Student's t, whose mean and variance are drawn as such.
    squares = draws.noncentral_chisquare(count - 1, float((levels**2).sum()) / spread**2, DRAWS)
    errors = spread * np.sqrt(squares / (count - 1) / count)
    means = difference + spread / math.sqrt(count) * draws.standard_normal(DRAWS)
    return float((means >= student(count - 1) * errors).mean())


def _found(values: FloatArray) -> float:
    """The share of samples, the rows, whose sum is above 0 with a sign-flip p-value of 0.05 or less."""
    # Other signs of some values give as large a sum or a larger one where these values add up to no more than 0.
    flipped = np.zeros((len(values), 1), dtype=np.float32)
    for column in values.T.astype(np.float32):
        flipped = np.concatenate([flipped, flipped + column[:, None]], axis=1)
    return float(((flipped <= 0).sum(axis=1) <= ALPHA / 2 * flipped.shape[1]).mean())


def _evenly_apart(count: int) -> FloatArray:
    """Places with mean 0 and standard deviation 1; of a single one, 0."""
    places = np.arange(count) - (count - 1) / 2
    return np.asarray(places / places.std() if count > 1 else places)
