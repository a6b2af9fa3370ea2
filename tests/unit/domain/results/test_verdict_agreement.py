"""The judges' agreement on sentences: published examples, groups, what is left out, and its cost."""

import time

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.results.totals import MIXED_SCALES
from app.domain.results.verdict_agreement import NO_JOINT, JointScores
from app.domain.statistics.krippendorff import NO_VARIATION
from tests.unit.agreement_sample import agreed, joint

# The data set "anxiety" of R's package irr (Gamer et al.): 20 persons, three raters, whom its manual compares by kappa2.
RATER_1 = [3, 3, 3, 4, 5, 5, 2, 3, 5, 2, 2, 6, 1, 5, 2, 2, 1, 2, 4, 3]
RATER_2 = [3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4]
SIX = Scale(minimum=1, maximum=6)


def test_weighted_kappa_of_a_published_example() -> None:
    whole, *_ = agreed(joint(*zip(RATER_1, RATER_2, strict=True), scale=SIX))
    (pair,) = whole.pairs
    # kappa2(anxiety[, 1:2], "squared") gives 0.297; the raters give 6 of 20 persons the same score.
    assert f"{pair.quadratic_kappa.value:.3f}" == "0.297"
    equal = sum(one == other for one, other in zip(RATER_1, RATER_2, strict=True))
    assert (pair.exact_agreement.value, pair.exact_agreement.n) == (equal / 20, 20)
    apart = sum(abs(one - other) for one, other in zip(RATER_1, RATER_2, strict=True))
    assert pair.mean_absolute_difference.value == pytest.approx(apart / 20)


def test_a_unit_that_only_one_judge_scored_is_left_out_and_counted() -> None:
    whole, *_ = agreed(
        joint((1, 1, None), (4, 5, None), (3, None, None), (None, 2, 2)), judges=("a", "b", "c")
    )
    assert (whole.left_out, whole.alpha_interval.n) == (1, 3)
    found = {pair.judges: (pair.exact_agreement.n, pair.left_out) for pair in whole.pairs}
    assert found == {("a", "b"): (2, 2), ("a", "c"): (0, 4), ("b", "c"): (1, 2)}
    (missing,) = [pair for pair in whole.pairs if pair.judges == ("a", "c")]
    assert missing.quadratic_kappa.reason == NO_JOINT


def test_one_score_throughout_is_agreement_but_no_coefficient() -> None:
    whole, *_ = agreed(joint((4, 4), (4, 4)))
    assert whole.alpha_ordinal.reason == whole.pairs[0].quadratic_kappa.reason == NO_VARIATION
    assert whole.pairs[0].exact_agreement.value == 1.0


def test_tasks_and_dimensions_have_their_own_figures_and_mixed_scales_none() -> None:
    cells = (
        joint((1, 2), (5, 5), task="essay", dimension="E"),
        joint((1, 1), (6, 6), task="essay", dimension="formality", scale=SIX),
        joint((2, 2), (3, 4), task="post", dimension="E"),
    )
    found = {tuple(getattr(each, name) for name in each.by): each for each in agreed(*cells)}
    assert list(found) == [(), ("essay",), ("post",), ("E",), ("formality",)]
    assert found[()].alpha_ordinal.reason == found["essay",].alpha_interval.reason == MIXED_SCALES
    assert found[()].pairs[0].exact_agreement.reason == MIXED_SCALES
    assert found["formality",].alpha_interval.value == 1.0
    assert found["E",].alpha_interval.n == 4


def test_intervals_are_over_personas_and_hold_their_figures() -> None:
    draws = np.random.default_rng(5)
    cells = []
    for persona in range(12):
        first = draws.integers(1, 6, 40)
        second = np.clip(first + draws.integers(-1, 2, 40), 1, 5)
        cells.append(joint(*zip(first.tolist(), second.tolist(), strict=True), persona=f"p{persona}"))
    whole, *_ = agreed(*cells)
    pair = whole.pairs[0]
    for metric in (whole.alpha_ordinal, whole.alpha_interval, pair.quadratic_kappa, pair.exact_agreement):
        assert metric.ci95 is not None
        assert metric.ci95[0] < (metric.value or 0.0) < metric.ci95[1]
    few, *_ = agreed(*cells[:2])
    assert few.alpha_ordinal.ci95_reason == "too_few_personas: 2 personas; an interval needs 5"
    assert agreed(*cells[::-1])[0] == whole


def test_personas_that_are_all_alike_prove_no_certainty() -> None:
    whole, *_ = agreed(*[joint((1, 2), (4, 4), (5, 5), persona=f"p{n}") for n in range(6)])
    pair = whole.pairs[0]
    for metric in (whole.alpha_ordinal, whole.alpha_interval, pair.quadratic_kappa, pair.exact_agreement):
        assert metric.ci95 is not None
        assert metric.ci95[0] < (metric.value or 0.0) - 0.2


def test_half_a_million_verdicts_take_less_than_a_second() -> None:
    draws = np.random.default_rng(6)
    cells = [
        JointScores(
            f"p{n % 15}",
            f"t{n % 3}",
            "OCEAN"[n % 5],
            Scale(),
            draws.integers(-1, 5, (463, 2)),
            np.ones(463, dtype=np.int64),
        )
        for n in range(540)
    ]
    seconds = []
    for _ in range(3):  # the quickest: others on the machine slow even CPU time down
        started = time.process_time()
        whole, *_ = agreed(*cells)
        seconds.append(time.process_time() - started)
    assert min(seconds) < 1
    assert abs(whole.alpha_interval.value or 1.0) < 0.02  # chance
