"""Totals of an old judge as a new one would give them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.rc_atom import rc_atom
from app.domain.metrics.scores import CellScores
from app.domain.results.bridge import BridgedFigure
from app.domain.results.bridge_agreement import UNREADABLE, Judged, agreements, graded_agreement
from app.domain.results.bridge_words import Doubt, decided, doubts, recommendation, without_doubted
from app.domain.results.bridged_totals import PAIRS, TEXTS, Drawn, bridged_grades, bridged_sentences
from app.domain.results.twice_judged import JudgedCell, TwiceJudged, distinct
from benchmarks.inference.bridge import DESIGNS, Texts, coverage

Place = tuple[int, int, int]
New = Mapping[tuple[Place, str], Sequence[int]]


SCALE = Scale()


@dataclass(frozen=True)
class Text:
    """Of a persona of the level high: cell, run, item, what the old judge gave, and the dimension."""

    place: Place
    scores: Sequence[int]
    dimension: str = "E"
    scale: Scale = SCALE
    task: str = "essay"


def text(place: Place, *scores: int, dimension: str = "E") -> Text:
    return Text(place, scores, dimension)


def counted(
    texts: Sequence[Text], new: New, draws: Mapping[tuple[int, int], int] | None = None
) -> TwiceJudged:
    """What was drawn are single texts, or what ``draws`` says of each cell and run."""
    texts = sorted(texts, key=lambda each: (each.place[0], each.dimension, each.place))
    names = list(dict.fromkeys((each.place[0], each.dimension, each.task, each.scale) for each in texts))
    cells = [
        JudgedCell("m", f"p{cell}", task, dimension, len(scale.levels) - 1, scale)
        for cell, dimension, task, scale in names
    ]
    numbers = {place: n for n, place in enumerate(sorted({each.place for each in texts}))}
    size = max(each.scale.size for each in texts)

    def counts(scores: Sequence[int], scale: Scale) -> list[int]:
        return [list(scores).count(scale.minimum + n) for n in range(size)]

    given = [new.get((each.place, each.dimension)) for each in texts]
    of_text = np.array([numbers[each.place] for each in texts])
    return TwiceJudged(
        cells,
        np.array([names.index((each.place[0], each.dimension, each.task, each.scale)) for each in texts]),
        of_text,
        np.array([each.place[1] for each in texts]),
        np.array([each.place[2] for each in texts]),
        of_text if draws is None else np.array([draws[each.place[:2]] for each in texts]),
        np.array([scores is not None for scores in given]),
        np.array([counts(each.scores, each.scale) for each in texts]),
        np.array([counts(scores or (), each.scale) for each, scores in zip(texts, given, strict=True)]),
    )


def bridged_figures(
    texts: Sequence[Text], new: New, within: float, drawn: Drawn = TEXTS
) -> list[BridgedFigure]:
    return bridged_sentences(counted(texts, new), within, drawn)


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
        new = {((cell, 0, 0), "E"): (5, 1) for cell in range(4)}
        one = figure(bridged_figures(texts, new, 0.05), "acc_atom")
        assert (one.old.value, one.bridged.value, one.effect.value) == (1, 0.5, -0.5)
        assert one.bridged.ci95 == (0.5, 0.5)
        assert one.finding == "different"

    def test_all_texts_judged_again_count_by_the_new_judges_scores(self) -> None:
        texts = [text((cell, run, 0), 5) for cell in range(2) for run in range(2)]
        new: New = {
            ((0, 0, 0), "E"): (1,),
            ((0, 1, 0), "E"): (),
            ((1, 0, 0), "E"): (5,),
            ((1, 1, 0), "E"): (5,),
        }
        one = figure(bridged_figures(texts, new, 0.05), "acc_atom")
        # Cell 0 has one run that it scored, with 0; cell 1 has two with 1: (0 + 1) / 2, and not 2 / 3.
        assert (one.bridged.value, one.bridged.ci95) == (0.5, (0.5, 0.5))

    def test_scales_that_differ_have_no_common_mean(self) -> None:
        other = Text((1, 0, 0), [5], "P", Scale(1, 7))
        found = bridged_figures([text((0, 0, 0), 5), other], {}, 0.05)
        assert {each.metric for each in found} == {"acc_atom", "ic_atom"}

    def test_two_traits_of_a_response_are_one_draw(self) -> None:
        texts = [text((n, 0, 0), 5, dimension=d) for n in range(40) for d in ("A", "E")]
        new: New = {((n, 0, 0), d): (5 if n % 2 else 1,) for n in range(20) for d in ("A", "E")}
        assert figure(bridged_figures(texts, new, 0.05), "acc_atom").anchors == 20

    def test_one_anchor_that_differs_tells_little_of_how_many_do(self) -> None:
        """Of 40 single sentences: Student's t has about two degrees of freedom, not 39."""
        texts = [text((0, run, 0), 5) for run in range(400)]
        new = {((0, run, 0), "E"): (1 if run == 7 else 5,) for run in range(40)}
        one = figure(bridged_figures(texts, new, 0.05), "acc_atom")
        assert one.bridged.value is not None
        assert one.bridged.value == pytest.approx(39 / 40)
        low, _ = one.bridged.ci95 or (1, 1)
        error = (1 / 40 * 39 / 40 / 39 * (1 - 40 / 400)) ** 0.5
        assert one.bridged.value - low > 3.5 * error  # 2.02 by 39

    def test_few_anchors_of_a_task_are_taken_together_with_others_of_their_level(self) -> None:
        """Of each of 14 tasks and levels three are anchors. The new judge takes low to be less so, and the middle to be high."""
        texts = [
            Text((cell, n, 0), (2, 2) if cell % 2 else (3, 3), task=f"t{cell // 2}")
            for cell in range(14)
            for n in range(20)
        ]
        new = {
            ((cell, n, 0), "E"): (3, 3 - (n == 0)) if cell % 2 else (4, 4 - (n == 0))
            for cell in range(14)
            for n in range(3)
        }
        judged = counted(texts, new)
        cells = [cell._replace(level=0 if int(cell.persona[1:]) % 2 else 2) for cell in judged.cells]
        one = figure(bridged_sentences(replace(judged, cells=cells), 0.05, TEXTS), "acc_atom")
        assert one.bridged.ci95 is not None
        low, high = one.bridged.ci95
        # A third of a level's anchors have 0.5, the others 0 of the low level and 1 of the high.
        of_level = 0.5 * (1 / 3 * 2 / 3) ** 0.5
        of_both = (of_level**2 + (1 / 3) ** 2) ** 0.5
        assert 2 * of_level < (high - low) * 42**0.5 / 2 / (1 - 42 / 280) ** 0.5 < 2 * of_both


class TestWords:
    def test_a_judge_that_says_the_same_is_interchangeable(self) -> None:
        texts = [text((n, 0, 0), 5, 4, 3) for n in range(30)]
        found = bridged_figures(texts, {((n, 0, 0), "E"): (5, 4, 3) for n in range(30)}, 0.05)
        assert decided(found) is True
        assert recommendation(found, 0.05).startswith("Interchangeable within ± 5 %")

    def test_a_shifted_one_is_not_and_the_figures_are_named(self) -> None:
        texts = [text((n, 0, 0), 5, 4, 4) for n in range(30)]
        found = bridged_figures(texts, {((n, 0, 0), "E"): (3, 3, 4) for n in range(30)}, 0.05)
        assert decided(found) is False
        words = recommendation(found, 0.05)
        assert words.startswith("Not interchangeable within ± 5 %")
        assert "ACC_atom changes by -0.667" in words

    def test_judges_that_agree_by_chance_are_not_interchangeable_with_equal_totals(self) -> None:
        # Each judge gives half of the sentences a 5 and the others a 4, whatever the other one gives.
        texts = [text((n, 0, 0), 5, 4, 5, 4) for n in range(30)]
        new = {((n, 0, 0), "E"): (5, 5, 4, 4) for n in range(30)}
        found = bridged_figures(texts, new, 0.05)
        assert decided(found) is True
        said = [
            (0, 4 * n + k, b, a, 1)
            for n in range(30)
            for k, (a, b) in enumerate(((5, 5), (4, 5), (5, 4), (4, 4)))
        ]
        agreement = agreements([Judged("E", "high", Scale())], np.array(said), 0)
        assert agreement[0].quadratic_kappa.value == 0
        chance = doubts([], agreement, None)
        checked = without_doubted(found, chance)
        assert decided(checked) is None
        words = recommendation(checked, 0.05, found=chance)
        assert words.startswith(
            "Do not replace one judge by the other: the judges agree no better than chance on 120 sentences (κ 0.00"
        )
        agreed = agreements(
            [Judged("E", "high", Scale())], np.array([(0, n, 3 + n % 3, 3 + n % 3, 1) for n in range(120)]), 0
        )
        assert doubts([], agreed, None) == []
        assert without_doubted(found, []) == found

    @pytest.mark.parametrize(("of", "undecided"), [("sentences", True), ("all", True), ("grades", False)])
    def test_a_doubt_of_a_judge_comes_first_and_leaves_its_figures_open(
        self, of: Literal["sentences", "grades", "all"], *, undecided: bool
    ) -> None:
        texts = [text((n, 0, 0), 5, 4, 4) for n in range(400)]
        found = bridged_figures(texts, {((n, 0, 0), "E"): (5, 4, 4) for n in range(400)}, 0.05)
        assert decided(found) is True
        doubt = Doubt("one_score", "a/judge gives the score 5 to 97 % of 400 sentences", of)
        assert (decided(without_doubted(found, [doubt])) is None) is undecided
        words = recommendation(found, 0.05, found=[doubt])
        assert words.startswith("Do not replace one judge by the other: a/judge gives the score 5 to 97 %")

    def test_few_anchors_leave_it_open_and_say_how_many_would_do(self) -> None:
        draws = np.random.default_rng(1)
        texts = [text((n, 0, 0), *draws.integers(3, 6, 5).tolist()) for n in range(2000)]
        new = {((n, 0, 0), "E"): draws.integers(3, 6, 5).tolist() for n in range(25)}
        found = bridged_figures(texts, new, 0.02)
        one = figure(found, "acc_atom")
        assert one.finding == "undecided"
        assert one.anchors_needed is not None
        assert one.anchors_needed > 25
        assert decided(found) is None
        assert "anchors" in recommendation(found, 0.02)

    def test_too_few_for_an_interval_are_told(self) -> None:
        texts = [text((n, 0, 0), 5, 4, 4) for n in range(400)]
        found = bridged_figures(texts, {((n, 0, 0), "E"): texts[n].scores for n in range(19)}, 0.05)
        assert "Draw more anchors: an interval needs 20." in recommendation(found, 0.05)

    def test_judges_that_agree_fully_leave_it_open_if_anchors_are_few(self) -> None:
        """Nothing spreads, so that a spread says nothing of how many would do."""

        def bridged(anchors: int) -> list[BridgedFigure]:
            texts = [text((n, 0, 0), 5, 4, 4) for n in range(400)]
            return bridged_figures(texts, {((n, 0, 0), "E"): texts[n].scores for n in range(anchors)}, 0.05)

        found = bridged(46)
        words = recommendation(found, 0.05)
        needed = figure(found, "acc_atom").anchors_needed
        assert needed is not None
        assert figure(bridged(needed - 1), "acc_atom").finding == "undecided"
        assert figure(bridged(needed), "acc_atom").finding == "interchangeable"
        assert "range. Undecided: ACC_atom changes by 0.000, " in words
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
    said = [
        (0, n, new, old, 1) for n, (new, old) in enumerate([(5, 4), (4, 4), (3, 2), (1, 1), (UNREADABLE, 4)])
    ]
    whole, of_dimension = agreements([Judged("E", "high", Scale())], np.array(said), 0)
    assert (whole.dimension, of_dimension.dimension) == (None, "E")
    assert (whole.sentences, whole.responses, whole.left_out) == (5, 4, 1)
    assert whole.shift.value == 0.5  # new − old
    assert (whole.acc_new.value, whole.acc_old.value, whole.acc_shift.value) == (0.5, 0.5, 0)


def test_agreement_on_grades_counts_answers() -> None:
    found = graded_agreement(np.array([(5, 4), (4, 4), (UNREADABLE, 3)]), 0)
    assert found is not None
    assert (found.responses, found.left_out, found.shift.value) == (3, 1, 0.5)
    assert graded_agreement(np.empty((0, 2), dtype=np.int64), 0) is None


RUNS = [
    text((cell, run, 0), *scores)
    for cell in (0, 1)
    for run, scores in enumerate([(5, 5), (5, 4), (4, 3), (1, 2)])
]
DRAWS = {(cell, run): 2 * cell + run // 2 for cell in (0, 1) for run in range(4)}


class TestRetestConsistency:
    """Two cells of four runs, a text of two sentences each; runs 0 and 1 of both cells are the anchors, as pairs."""

    def test_the_old_total_is_that_of_results(self) -> None:
        found = bridged_sentences(counted(RUNS, {}, DRAWS), 0.05, PAIRS)
        histograms = np.array([np.bincount(each.scores, minlength=6)[1:] for each in RUNS[:4]])
        cell = CellScores(Scale(), 2, np.arange(4), np.full(4, -1), histograms, {})
        assert figure(found, "rc_atom").old.value == rc_atom(cell).overall.value

    def test_all_runs_judged_again_give_the_new_total_itself(self) -> None:
        new = {(each.place, "E"): (3, 3) for each in RUNS}
        one = figure(bridged_figures(RUNS, new, 0.05), "rc_atom")
        assert (one.bridged.value, one.bridged.ci95) == (1, (1, 1))

    def test_two_traits_of_a_persona_are_two_cells(self) -> None:
        """The runs of the one are alike, (5, 5) and (1, 2) of the other lie 3.5 apart, the others less."""
        both = [*RUNS, *(replace(each, dimension="A", scores=(4, 4)) for each in RUNS)]
        new = {(each.place, each.dimension): each.scores for each in both}
        one = figure(bridged_figures(both, new, 0.05), "rc_atom")
        alone = figure(bridged_figures(RUNS, new, 0.05), "rc_atom")
        assert alone.bridged.value is not None
        assert one.bridged.value == one.old.value == pytest.approx((alone.bridged.value + 1) / 2)
        assert one.anchors == alone.anchors

    def test_single_texts_have_none(self) -> None:
        found = bridged_figures(RUNS, {((0, 0, 0), "E"): (5, 5)}, 0.05)
        assert {each.metric for each in found} == {"acc_atom", "ic_atom", "mean"}

    def test_a_pair_of_runs_is_one_draw(self) -> None:
        new = {((cell, run, 0), "E"): (5, 5) for cell in (0, 1) for run in (0, 1)}
        one = figure(bridged_sentences(counted(RUNS, new, DRAWS), 0.05, PAIRS), "rc_atom")
        assert (one.anchors, one.old.n) == (4, 8)
        assert one.bridged.ci95_reason == "too_few_anchors: 2 pairs of runs; an interval needs 20"
        # The old judge's pair has the distance 0.5, so 1 − 2 · 0.5/4 = 0.75; the new one's has 1.
        assert one.old.value is not None
        assert one.effect.value == pytest.approx(1 - 0.75, abs=1e-9)


class TestPersonaScores:
    def test_are_over_the_personas_that_have_every_task(self) -> None:
        texts = [
            Text((0, 0, 0), [5], "", task="action"),
            Text((0, 1, 0), [3], "", task="action"),  # a second run of the same question
            Text((0, 0, 1), [2], "", task="action"),
            Text((1, 0, 0), [4], "", task="habits"),
            Text((2, 0, 0), [1], "", task="action"),
        ]
        judged = counted(texts, {})
        cells = [cell._replace(persona="b" if n == 2 else "a") for n, cell in enumerate(judged.cells)]
        found = bridged_grades(replace(judged, cells=cells), 0.05, TEXTS)
        of_a = ((5 + 3) / 2 + 2) / 2
        assert figure(found, "persona_score").old.value == (of_a + 4) / 2
        assert figure(found, "persona_score", model="m").old.value == (of_a + 4) / 2
        assert figure(found, "persona_score", task="action").old.value == (of_a + 1) / 2


@pytest.mark.parametrize(
    "design", ["200 anchors", "shifted for one model", "200 anchors in pairs", "200 graded anchors"]
)
def test_intervals_hold_the_truth_in_about_95_of_100(design: str) -> None:
    """A short version of ``benchmarks.inference.bridge``, whose repetitions are in RESULTS.md."""
    found = coverage(DESIGNS[design], 10, seed=1)
    for metric, figures in found.items():
        assert figures["coverage"] > 0.83, metric
        assert figures["false_interchangeable"] <= 0.05, metric
        assert figures["false_different"] <= 0.05, metric


@pytest.mark.long
@pytest.mark.timeout(1800)  # for a busy machine
@pytest.mark.parametrize("design", list(DESIGNS))
def test_intervals_hold_the_truth_in_93_to_99_of_100(design: str) -> None:
    rare = "1 %" in design  # of which the page on inference says that they hold it less, or more, often
    for metric, figures in coverage(DESIGNS[design], 300).items():
        least = 0.88 if rare and metric == "ic_atom" else 0.92
        assert least < figures["coverage"] < (0.995 if rare else 0.99), metric


def test_pairs_that_were_drawn_are_found_again() -> None:
    texts = Texts(DESIGNS["100 anchors in pairs"], 0)
    one = texts.anchored(3)
    drawn = {draw: one.where(one.draw == draw) for draw in np.unique(one.draw[one.anchor]).tolist()}
    assert len(drawn) == 50
    assert all(len(pair.text) == 2 and pair.anchor.all() for pair in drawn.values())


def test_different_rows_are_found_as_numpy_finds_them() -> None:
    rows = np.random.default_rng(1).integers(-1, 3, (200, 3))
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    for found, expected in zip(distinct(rows), (first, place), strict=True):
        assert np.array_equal(found, expected)
    assert [each.size for each in distinct(rows[:0])] == [0, 0]
