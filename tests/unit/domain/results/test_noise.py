"""What differences vary with, read back from figures of which it is known."""

import math

import numpy as np
import pytest

from app.domain.results.comparison import Figure, Figures, Place
from app.domain.results.noise import PUBLISHED, assumed, differences, variance_of, variances
from app.domain.statistics.cells import shape_of
from app.domain.statistics.design import Error, interval
from app.domain.statistics.power import Noise, Size
from app.services.results.noise import _published
from benchmarks.inference import comparisons

NOISE = Noise(personas=0.08, wordings=0.05, both=0.06, runs=0.15, levels=0.1)
SIZE = Size(300, 3, 40, 4)


def test_noise_is_read_back_from_a_large_comparison() -> None:
    draws = np.random.default_rng(4)
    pairs = [comparisons.differences(draws, NOISE, SIZE, 0.1) for _ in range(3)]
    of_runs = NOISE.runs**2 / (SIZE.personas * SIZE.wordings * SIZE.iterations)
    found = variances(pairs, [of_runs] * 3)
    assert found.size == SIZE
    for name, sd in found.noise(assumed("acc_atom", 1, 1))._asdict().items():
        assert sd == pytest.approx(getattr(NOISE, name), rel=0.15), name


def test_runs_that_are_not_told_apart_are_part_of_wordings_and_personas() -> None:
    pairs = [comparisons.differences(np.random.default_rng(4), NOISE, SIZE, 0.1)]
    found = variances(pairs, [None]).noise(assumed("acc_atom", 1, 1))
    assert found.runs == 0
    assert found.both == pytest.approx(math.hypot(NOISE.both, NOISE.runs / math.sqrt(4)), rel=0.05)


def figures(shift: float, *, effects: bool) -> Figures:
    """Three personas on each level, in two tasks."""
    return {
        ("acc_atom", Place(f"{level}-{n}", task, "E", level)): Figure(
            0.5 + shift * n + 0.1 * shift * (level == "high"),
            None,
            (0, 1),
            n=12,
            wordings={f"w{w}": shift * 0.01 * (w - 1) for w in range(3)} if effects else None,
        )
        for level in ("low", "high")
        for n in range(3)
        for task in ("essay", "questionnaire")
    }


def test_what_no_wording_tells_is_as_assumed() -> None:
    cells = differences("acc_atom", {"essay"}, figures(0.2, effects=False), figures(0.0, effects=False))
    assert len(cells) == 6
    found = variances([cells], [None])
    assert found.wordings is None
    usual = assumed("acc_atom", 1, 1)
    noise = found.noise(usual)
    assert (noise.wordings, noise.both, noise.runs) == (usual.wordings, usual.both, usual.runs)
    assert noise.personas == pytest.approx(0.2)  # of 0, 0.2 and 0.4
    assert noise.levels == pytest.approx(0.01)  # of 0.2 and 0.22


def test_wordings_that_both_models_have_tell_of_other_wordings() -> None:
    cells = differences("acc_atom", {"essay"}, figures(0.2, effects=True), figures(0.0, effects=True))
    found = variances([cells], [None])
    # Twice the jackknife's differences of 0.002 are the wordings' own.
    assert found.size == Size(6, 2, 3, 4)
    assert found.wordings == pytest.approx(0.004**2)


def test_the_published_cells_tell_of_personas() -> None:
    found = _published("acc_atom", frozenset(["essay", "questionnaire", "social_media_post"]))
    # The 66 pairs' root mean square on one level is 0.095, of which 0.02 are wordings and runs as assumed.
    noise = found.noise(assumed("acc_atom", 1, 3))
    assert found.size == PUBLISHED
    assert noise.personas == pytest.approx(math.sqrt(0.095**2 - (0.03**2 + 0.15**2 / 3 / 5) / 6), abs=0.001)


@pytest.mark.parametrize("error", [0.01, 0.1])
@pytest.mark.parametrize(
    ("metric", "value"),
    [("acc_atom", 0.9), ("acc_atom", 0.5), ("mean", 3.2), ("acc", 0.9), ("acc", 0.5), ("acc", 0.1)],
)
def test_an_interval_tells_the_variance_behind_it(metric: str, value: float, error: float) -> None:
    found = interval(value, Error(error**2, 100.0, 100), (0, 5), shape_of(metric))
    assert found.ends is not None
    assert variance_of(metric, value, found.ends) == pytest.approx(
        error**2, rel=0.001 if error < 0.1 else 0.05
    )


@pytest.mark.parametrize("metric", ["acc", "acc_atom"])
def test_an_interval_that_reaches_the_end_of_the_scale_does_not(metric: str) -> None:
    assert variance_of(metric, 1.0, (0.9, 1.0)) is None
