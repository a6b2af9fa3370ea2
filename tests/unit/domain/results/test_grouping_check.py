"""How far two ways of judging agree, with the arithmetic."""

import pickle
from itertools import chain
from typing import Any

import pytest

from app.domain.instruments.dimension import Scale
from app.domain.judging.grouping import Grouping
from app.domain.judging.verdict import NOT_APPLICABLE, UNPARSED, Verdict, VerdictStatus
from app.domain.results.grouping_check import CHECK_METRICS, CheckedSentence, CheckedSentences
from app.domain.results.paired_verdicts import MOST_CLUSTERS
from app.instruments.grouped_loader import load_grouped
from tests.unit.check_sample import checked

GROUPING = Grouping(5, 0.1, 2, load_grouped(), seed=3, checked=4, drawn_from=40, drawn_below=9)


def score(value: int) -> Verdict:
    return Verdict(VerdictStatus.SCORED, value)


def pair(grouped: Verdict, alone: Verdict, run: int = 0, **changes: Any) -> CheckedSentence:
    """On 1–5, by a persona whose level is high: 4 and 5."""
    usual: dict[str, Any] = {"judge": "j", "task": "essay", "scale": Scale(), "level": "high"}
    return CheckedSentence(**(usual | changes), response=(0, run, 0), grouped=grouped, alone=alone)


def figures(*sentences: CheckedSentence) -> dict[str, Any]:
    """The row over all tasks."""
    found = checked(GROUPING, sentences, {})["agreement"]
    assert isinstance(found, list)
    assert [row["task"] for row in found] == [None, *sorted({s.task for s in sentences})]
    row: dict[str, Any] = found[0]
    return row


def test_counts_of_the_sample_stay_whole_numbers_in_json() -> None:
    sentences = CheckedSentences()
    sentences.add(pair(score(5), score(4)))
    shown = sentences.check(GROUPING, {}).model_dump_json(exclude_unset=True)
    assert '"sample":{"share":0.1,"minimum":2,"responses":4,"drawn_from":40}' in shown


class TestFigures:
    def test_a_hand_computed_example(self) -> None:
        found = figures(
            pair(score(5), score(4)),
            pair(score(3), score(3)),
            pair(score(2), score(4)),
            pair(NOT_APPLICABLE, NOT_APPLICABLE),
            pair(score(4), NOT_APPLICABLE),
            pair(score(4), UNPARSED),
        )
        assert (found["sentences"], found["responses"], found["left_out"]) == (6, 1, 1)
        values = {name: (found[name]["value"], found[name]["n"]) for name in CHECK_METRICS}
        # Alike: 3 with 3 and "none" with "none", of five pairs that can be read.
        assert values["exact_agreement"] == (pytest.approx(2 / 5), 5)
        # Scored both ways: 5-4, 3-3, 2-4.
        assert values["mean_absolute_difference"] == (pytest.approx(1.0), 3)
        assert values["mean_difference"] == (pytest.approx(-1 / 3), 3)
        # Observed (1 + 0 + 4) / 3. Expected: var(5, 3, 2) + var(4, 3, 4) + (10/3 - 11/3)² = 14/9 + 2/9 + 1/9.
        assert values["quadratic_kappa"] == (pytest.approx(1 - (5 / 3) / (17 / 9)), 3)
        # In character grouped: 5, 4 of 5, 3, 2, 4; alone: 4, 4 of 4, 3, 4.
        assert values["acc_grouped"] == (pytest.approx(2 / 4), 4)
        assert values["acc_alone"] == (pytest.approx(2 / 3), 3)
        assert values["acc_difference"] == (pytest.approx(1 / 2 - 2 / 3), 5)

    def test_what_does_not_exist_has_a_reason_and_no_number(self) -> None:
        found = figures(pair(score(4), UNPARSED))
        metrics = [value for value in found.values() if isinstance(value, dict) and "n" in value]
        assert len(metrics) == 7
        assert all(metric["value"] is None and metric["reason"] for metric in metrics)

    def test_intervals_are_over_responses_and_need_five(self) -> None:
        few = figures(*(pair(score(4), score(3), run) for run in range(4)))
        assert few["mean_difference"]["ci95_reason"].startswith("too_few_responses: 4")
        found = figures(*(pair(score(4 + run % 2), score(4), run) for run in range(40)))
        low, high = found["mean_difference"]["ci95"]
        assert low < found["mean_difference"]["value"] == 0.5 < high
        assert (low, high) == pytest.approx((0.5, 0.5), abs=0.25)

    def test_dimensions_of_another_scale_have_a_row_of_their_own(self) -> None:
        wide = Scale(1, 7)
        found = checked(GROUPING, [pair(score(4), score(4)), pair(score(7), score(6), scale=wide)], {})[
            "agreement"
        ]
        assert isinstance(found, list)
        assert [(row["task"], row["scale"]["maximum"], row["sentences"]) for row in found] == [
            (None, 5, 1),
            (None, 7, 1),
            ("essay", 5, 1),
            ("essay", 7, 1),
        ]

    def test_the_order_of_a_responses_sentences_changes_nothing_however_many_responses(self) -> None:
        responses = [
            [pair(score(1 + (run + n) % 5), score(3), run) for n in range(3)]
            for run in range(MOST_CLUSTERS + 50)
        ]
        turned = [list(reversed(sentences)) for sentences in responses]
        assert figures(*chain(*responses)) == figures(*chain(*turned))

    def test_what_is_kept_of_sentences_does_not_grow_with_them(self) -> None:
        def kept_of(responses: int) -> int:
            check = CheckedSentences()
            for run in range(responses):
                check.add(pair(score(1 + run % 5), score(3), run))
            return len(pickle.dumps(check))

        assert kept_of(4 * MOST_CLUSTERS) < 1.01 * kept_of(MOST_CLUSTERS)

    def test_a_job_in_which_nothing_was_judged_both_ways_says_so(self) -> None:
        assert checked(GROUPING, [], {"refused": 2}) == {
            "sentences_per_call": 5,
            "sample": {"share": 0.1, "minimum": 2, "responses": 4, "drawn_from": 40},
            "responses": 0,
            "sentences": 0,
            "asked_alone": {"unparsed": 0, "refused": 2, "failed": 0, "filtered": 0},
            "agreement": [],
        }
