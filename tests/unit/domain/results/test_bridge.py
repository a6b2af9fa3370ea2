"""Totals of an old judge as a new one would give them."""

from collections.abc import Mapping

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.results.bridge import (
    BridgedFigure,
    BridgedPair,
    JudgedText,
    Scored,
    agreements,
    bridged_figures,
    decided,
    recommendation,
)
from app.domain.results.paired_verdicts import Pair, Position
from benchmarks.inference.bridge import DESIGNS, coverage

New = Mapping[tuple[Position, str], Scored | None]


def scored(*scores: int) -> Scored:
    """Of a persona of the level high."""
    return Scored(len(scores), sum(scores), sum(s * s for s in scores), sum(s > 3 for s in scores))


def text(place: Position, *scores: int, model: str = "m", dimension: str = "E") -> JudgedText:
    return JudgedText(place, model, "essay", dimension, "high", (1, 5), scored(*scores))


def figure(found: list[BridgedFigure], metric: str, **group: str) -> BridgedFigure:
    (one,) = [each for each in found if each.metric == metric and each.group == group]
    return one


class TestTotals:
    def test_every_cell_counts_alike_then_every_run(self) -> None:
        texts = [text((0, 0, 0), 5), text((0, 0, 1), 1), text((0, 1, 0), 5), text((1, 0, 0), 2)]
        one = figure(bridged_figures(texts, {}, 0.05), "acc_atom")
        # Cell 0: run 0 has (1 + 0) / 2, run 1 has 1; cell 1 has 0.
        assert one.old.value == pytest.approx(((0.5 + 1) / 2 + 0) / 2)
        assert (one.bridged.value, one.finding) == (None, None)

    def test_the_figures_are_the_papers(self) -> None:
        found = bridged_figures([text((0, 0, 0), 5, 4, 1)], {}, 0.05)
        assert figure(found, "mean").old.value == pytest.approx(10 / 3)
        assert figure(found, "ic_atom").old.value == pytest.approx(1 - 2 * np.std([5, 4, 1]) / 4)

    def test_a_response_with_one_score_has_no_consistency(self) -> None:
        found = figure(bridged_figures([text((0, 0, 0), 5)], {}, 0.05), "ic_atom")
        assert found.old.reason is not None

    def test_all_texts_judged_again_give_the_new_total_itself(self) -> None:
        texts = [text((cell, 0, 0), 5, 4) for cell in range(4)]
        new = {((cell, 0, 0), "E"): scored(5, 1) for cell in range(4)}
        one = figure(bridged_figures(texts, new, 0.05), "acc_atom")
        assert (one.old.value, one.bridged.value, one.effect.value) == (1, 0.5, -0.5)
        assert one.bridged.ci95 == (0.5, 0.5)
        assert one.finding == "different"

    def test_scales_that_differ_have_no_common_mean(self) -> None:
        other = JudgedText((1, 0, 0), "m", "essay", "P", "high", (1, 7), scored(5))
        found = bridged_figures([text((0, 0, 0), 5), other], {}, 0.05)
        assert {each.metric for each in found} == {"acc_atom", "ic_atom"}

    def test_two_traits_of_a_response_are_one_draw(self) -> None:
        texts = [text((n, 0, 0), 5, dimension=d) for n in range(40) for d in ("A", "E")]
        new: New = {((n, 0, 0), d): scored(5 if n % 2 else 1) for n in range(20) for d in ("A", "E")}
        assert figure(bridged_figures(texts, new, 0.05), "acc_atom").anchors == 20


class TestWords:
    def test_a_judge_that_says_the_same_is_interchangeable(self) -> None:
        texts = [text((n, 0, 0), 5, 4, 3) for n in range(30)]
        found = bridged_figures(texts, {((n, 0, 0), "E"): scored(5, 4, 3) for n in range(30)}, 0.05)
        assert decided(found) is True
        assert recommendation(found, 0.05).startswith("Interchangeable within ± 5 %")

    def test_a_shifted_one_is_not_and_the_figures_are_named(self) -> None:
        texts = [text((n, 0, 0), 5, 4, 4) for n in range(30)]
        found = bridged_figures(texts, {((n, 0, 0), "E"): scored(3, 3, 4) for n in range(30)}, 0.05)
        assert decided(found) is False
        words = recommendation(found, 0.05)
        assert words.startswith("Not interchangeable within ± 5 %")
        assert "acc_atom changes by -0.667" in words

    def test_few_anchors_leave_it_open_and_say_how_many_would_do(self) -> None:
        draws = np.random.default_rng(1)
        texts = [text((n, 0, 0), *draws.integers(3, 6, 5).tolist()) for n in range(2000)]
        new = {((n, 0, 0), "E"): scored(*draws.integers(3, 6, 5).tolist()) for n in range(25)}
        found = bridged_figures(texts, new, 0.02)
        one = figure(found, "acc_atom")
        assert one.finding == "undecided"
        assert one.anchors_needed is not None
        assert one.anchors_needed > 25
        assert decided(found) is None
        assert "anchors" in recommendation(found, 0.02)

    def test_judges_that_agree_fully_leave_it_open_if_anchors_are_few(self) -> None:
        """Nothing spreads, so that a spread says nothing of how many would do."""

        def bridged(anchors: int) -> list[BridgedFigure]:
            texts = [text((n, 0, 0), 5, 4, 4) for n in range(400)]
            return bridged_figures(texts, {((n, 0, 0), "E"): texts[n].old for n in range(anchors)}, 0.05)

        found = bridged(46)
        words = recommendation(found, 0.05)
        needed = figure(found, "acc_atom").anchors_needed
        assert needed is not None
        assert figure(bridged(needed - 1), "acc_atom").finding == "undecided"
        assert figure(bridged(needed), "acc_atom").finding == "interchangeable"
        assert "range. Undecided: acc_atom changes by 0.000, " in words
        most = max(each.anchors_needed or 0 for each in found)
        assert f". About {most} anchors for each of them would decide. Until then" in words
        assert "-0.000" not in recommendation(
            [
                each.model_copy(update={"effect": each.effect.model_copy(update={"value": -1e-17})})
                for each in found
            ],
            0.05,
        )


def test_agreement_counts_what_neither_could_read() -> None:
    scale = Scale()
    pairs = [
        BridgedPair(
            "E",
            (0, 0, n),
            Pair(scale, "high", Verdict(VerdictStatus.SCORED, new), Verdict(VerdictStatus.SCORED, old)),
        )
        for n, (new, old) in enumerate([(5, 4), (4, 4), (3, 2), (1, 1)])
    ] + [
        BridgedPair(
            "E",
            (0, 0, 4),
            Pair(scale, "high", Verdict(VerdictStatus.UNPARSED), Verdict(VerdictStatus.SCORED, 4)),
        )
    ]
    whole, of_dimension = agreements(pairs, 0)
    assert (whole.dimension, of_dimension.dimension) == (None, "E")
    assert (whole.sentences, whole.left_out) == (5, 1)
    assert whole.shift.value == 0.5  # new − old
    assert (whole.acc_new.value, whole.acc_old.value, whole.acc_shift.value) == (0.5, 0.5, 0)


@pytest.mark.parametrize("design", ["200 anchors", "shifted for one model"])
def test_intervals_hold_the_truth_in_about_95_of_100(design: str) -> None:
    """A short version of ``benchmarks.inference.bridge``, whose 1,000 repetitions are in RESULTS.md."""
    found = coverage(DESIGNS[design], 15, seed=1)
    for metric, figures in found.items():
        assert figures["coverage"] > 0.85, metric
        assert figures["false_interchangeable"] <= 0.05, metric
        assert figures["false_different"] <= 0.05, metric
