from collections import Counter
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.labels.calibration import (
    METRICS,
    Calibration,
    JudgedCell,
    JudgedSentences,
    LabelledSentence,
    over_dimensions,
)
from app.domain.labels.judge_errors import JudgedLabel, judge_errors

LEVEL_OF = {1: "low", 2: "low", 3: "neutral", 4: "high", 5: "high"}
CELLS = [
    JudgedCell(model, level, task, level)
    for model in "ab"
    for level in ("low", "neutral", "high")
    for task in ("essay", "post")
]
RUNS = 3


def sentences() -> list[LabelledSentence]:
    """Every sentence, each labelled by one person; posts have two items, and the second judge says nothing of every third sentence."""
    draws = np.random.default_rng(3)
    found = []
    for n, cell in enumerate(CELLS):
        for run in range(RUNS):
            for item in range(1 if cell.task == "essay" else 2):
                for unit in range(int(draws.integers(3, 12))):
                    people = int(draws.integers(1, 6))
                    one = min(5, people + int(draws.random() < 0.3))
                    scores = ((0, one),) if unit % 3 == 2 else ((0, one), (1, people))
                    found.append(LabelledSentence(n, run, item, scores, (people,)))
    return found


ALL = sentences()


def calibration(labelled: list[LabelledSentence]) -> Calibration:
    counts = Counter(each[:4] for each in ALL)
    return Calibration(CELLS, Scale(), [JudgedSentences(*key, n) for key, n in counts.items()], labelled)


def as_results_average(model: str, metric: str, *, people: bool) -> float:
    """Over sentences, responses, runs, judges and cells, each of its own."""

    def value(each: LabelledSentence, judge: int) -> float:
        score = each.people[0] if people else dict(each.scores)[judge]
        if metric == "mean":
            return score
        hit = float(LEVEL_OF[score] == CELLS[each.cell].level)
        chance = 0.2 if CELLS[each.cell].level == "neutral" else 0.4
        return hit if metric == "acc_atom" else (hit - chance) / (1 - chance)

    cells = []
    for n, cell in enumerate(CELLS):
        if cell.model != model:
            continue
        judges = []
        for judge in range(2):
            runs = []
            for run in range(RUNS):
                texts: dict[int, list[float]] = {}
                for each in ALL:
                    if each[:2] == (n, run) and judge in dict(each.scores):
                        texts.setdefault(each.item, []).append(value(each, judge))
                runs.append(fmean(fmean(values) for values in texts.values()))
            judges.append(fmean(runs))
        cells.append(fmean(judges))
    return fmean(cells)


class TestTotals:
    @pytest.mark.parametrize("model", ["a", "b"])
    @pytest.mark.parametrize("metric", METRICS)
    def test_are_averaged_like_the_results_and_are_peoples_where_all_is_labelled(
        self, model: str, metric: str
    ) -> None:
        totals = calibration(ALL).totals()
        (figure,) = [each for each in totals if each.keys == {"model": model} and each.metric == metric]
        assert figure.found is not None
        assert figure.found.judged == pytest.approx(as_results_average(model, metric, people=False))
        assert figure.found.value == pytest.approx(as_results_average(model, metric, people=True))

    def test_what_exceeds_chance_lies_between_none_in_character_and_all(self) -> None:
        for each in calibration(ALL).totals():
            if each.metric == "acc_atom_corrected" and "level" in each.keys:
                lowest = -0.25 if each.keys["level"] == "neutral" else -2 / 3
                assert each.bounds == pytest.approx((lowest, 1.0))

    def test_differences_are_those_of_the_totals(self) -> None:
        made = calibration(ALL)
        totals = {(each.keys["model"], each.metric): each for each in made.totals() if len(each.keys) == 1}
        differences = made.differences()
        assert [each.metric for each in differences] == [*METRICS]
        for each in differences:
            one, other = totals["a", each.metric].found, totals["b", each.metric].found
            assert each.found is not None
            assert one is not None
            assert other is not None
            assert each.found.value == pytest.approx(one.value - other.value)

    def test_differences_of_two_jobs_are_of_the_cells_that_both_have(self) -> None:
        made = calibration(ALL)
        first = [n for n, cell in enumerate(CELLS) if cell.model == "b" and cell.level != "low"]
        renamed = [replace(CELLS[n], model="c") for n in first]
        labelled = [each._replace(cell=first.index(each.cell)) for each in ALL if each.cell in first]
        counts = Counter(each[:4] for each in labelled)
        other = Calibration(
            renamed, Scale(), [JudgedSentences(*key, n) for key, n in counts.items()], labelled
        )
        mean, *_ = made.difference("a", other, "c", {"neutral"})
        assert (mean.keys, mean.cells) == ({"a": "a", "b": "c"}, 2)
        highs = {
            each.keys["model"]: each.found
            for each in made.totals()
            if each.keys.get("level") == "high" and each.metric == "mean"
        }
        (both,) = (
            each.found
            for each in other.totals()
            if each.keys == {"model": "c", "level": "high"} and each.metric == "mean"
        )
        one = highs["a"]
        assert mean.found is not None
        assert one is not None
        assert both is not None
        assert mean.found.value == pytest.approx(one.value - both.value)
        assert mean.found.judged == pytest.approx(one.judged - both.judged)
        assert made.difference("a", other, "c", {"neutral", "high"}) == []

    def test_without_a_label_there_is_a_reason(self) -> None:
        assert {(each.texts().reason or "").split(":")[0] for each in calibration([]).totals()} == {
            "no_label"
        }

    def test_labels_of_another_groups_sentences_count_nothing_there(self) -> None:
        of_one = [each for each in ALL if CELLS[each.cell].model == "a"]
        found = {
            each.keys["model"]: each.found for each in calibration(of_one).totals() if len(each.keys) == 1
        }
        assert found["a"] is not None
        assert found["b"] is None


class TestPilot:
    def test_says_where_people_and_judges_are_apart(self) -> None:
        cells = [JudgedCell("a", "p", "essay", "high")]
        labelled = [
            LabelledSentence(0, n, 0, ((0, score),), (5 if score == 5 else 3 + n % 2,))
            for score in (4, 5)
            for n in range(30)
        ]
        judged = [JudgedSentences(*each[:4], 10) for each in labelled]
        made = Calibration(cells, Scale(), judged, [*labelled, labelled[0]._replace(people=())]).pilot()
        # In the judge's 4s half of the labels are out of the level, in his 5s none.
        assert made.labels == 60
        assert set(made.spreads) == {("essay", 4), ("essay", 5)}
        assert made.spreads["essay", 4] == pytest.approx(0.5, rel=0.05)
        assert 0 < made.spreads["essay", 5] < 0.1

    def test_without_labels_says_nothing(self) -> None:
        made = calibration([]).pilot()
        assert (made.labels, made.spreads) == (0, {})


class TestOverDimensions:
    def test_every_cell_counts_the_same(self) -> None:
        whole = calibration(ALL)
        few = Calibration(CELLS[:2], Scale(), [JudgedSentences(0, 0, 0, ((0, 1),), 3)], [])
        one, other = whole.totals(), few.totals()
        for each, made in zip(one, over_dimensions([one], []), strict=True):
            assert (each.keys, each.bounds, each.cells) == (made.keys, made.bounds, made.cells)
            assert each.found is not None
            assert made.found is not None
            assert made.found.value == pytest.approx(each.found.value)
        twice = over_dimensions([one, calibration(ALL).totals()], [])
        assert twice[0].found is not None
        assert one[0].found is not None
        assert twice[0].found.variance == pytest.approx(one[0].found.variance / 2)
        (with_few,) = (
            each
            for each in over_dimensions([one, other], [])
            if each.keys == {"model": "a"} and each.metric == "mean"
        )
        assert with_few.cells == 7
        assert with_few.found is None

    def test_too_few_labels_stay_the_reason(self) -> None:
        one = calibration(ALL[:3]).totals()
        reasons = [each.texts().reason for each in over_dimensions([one], [])]
        assert reasons == [each.texts().reason for each in one]
        assert any(reason and reason.startswith("too_few_scored_labels") for reason in reasons)

    def test_a_dimension_without_labels_is_named(self) -> None:
        made = over_dimensions([calibration(ALL).differences()], ["N", "O"])
        assert {each.texts().reason for each in made} == {
            "no_label: no sentence on N, O was drawn and labelled"
        }


class TestRoganGladen:
    def test_recovers_what_a_judge_with_known_error_rates_hides(self) -> None:
        found = calibration(ALL).rogan_gladen(0)
        for model in "ab":
            value = found[model].value
            assert value == pytest.approx(as_results_average(model, "acc_atom", people=True), abs=0.08)

    def test_a_judge_who_tells_nothing_has_a_reason(self) -> None:
        scores = ((0, 3),)
        judged = [JudgedSentences(n, 0, 0, scores, 4) for n in range(len(CELLS))]
        labelled = [LabelledSentence(n, 0, 0, scores, (1 + n % 5,)) for n in range(len(CELLS))]
        found = Calibration(CELLS, Scale(), judged, labelled).rogan_gladen(0)
        assert (found["a"].reason or "").startswith("uninformative_judge:")


def label(
    n: int, people: int, judged: int, *, level: str = "low", length: int = 4, stands_for: float = 1.0
) -> JudgedLabel:
    return JudgedLabel((people,), judged, stands_for, (0, n, 0), level, "m", length)


class TestJudgeErrors:
    def test_each_sentence_counts_for_as_many_as_it_stands_for(self) -> None:
        labels = [label(0, 2, 2, stands_for=9), label(1, 2, 3, stands_for=3), label(2, 5, 4, stands_for=4)]
        whole = judge_errors("judge", labels, range(1, 6), 0)[0]
        assert whole.confusion[2][2].value == pytest.approx(0.75)
        assert whole.confusion[2][3].value == pytest.approx(0.25)
        assert whole.confusion[5][4].value == 1
        assert whole.confusion[1][1].value is None
        assert whole.mean_difference.value == pytest.approx((3 - 4) / 16)
        assert whole.exact_agreement.value == pytest.approx(9 / 16)

    def test_a_judge_who_is_hard_on_one_level_only_is_found_out(self) -> None:
        draws = np.random.default_rng(0)
        labels = []
        for n in range(120):
            level, people = ("low", "high")[n % 2], int(draws.integers(2, 6))
            error = int(draws.random() < (0.6 if level == "high" else 0.1))
            labels.append(label(n, people, people - error, level=level, length=1 + n // 2 % 2))
        found = {
            (each.by, each.key): each.from_others for each in judge_errors("judge", labels, range(1, 6), 0)
        }
        low, high = found["level", "high"].ci95 or (0, 0)
        assert high < 0
        low, high = found["length", "short"].ci95 or (1, 1)
        assert low < 0 < high
        assert (found["model", "m"].reason or "").startswith("no_other:")

    def test_a_group_of_few_texts_differs_from_no_other_and_says_so(self) -> None:
        labels = [label(n, 2 + n % 3, 2 + n % 2, level="low" if n < 4 else "high") for n in range(40)]
        found = judge_errors("judge", labels, range(1, 6), 0)
        for each in found:
            figures = (each.mean_difference, each.exact_agreement, each.from_others)
            for figure in (*figures, *(each.confusion[2].values())):
                assert (figure.ci95 is None) == (figure.ci95_reason is not None)
        few = {each.key: each.from_others for each in found if each.by == "level"}
        assert few["low"].ci95_reason == few["high"].ci95_reason
        assert (few["high"].ci95_reason or "").startswith("too_few_responses: 4 responses")

    def test_no_label_no_errors(self) -> None:
        assert judge_errors("judge", [], range(1, 6), 0) == []
