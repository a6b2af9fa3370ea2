"""Pairs of preferences: who is in them, in which order, with which margin; and rewards."""

import pytest

from app.domain.instruments.dimension import Scale
from app.domain.judging.fit import (
    Candidate,
    Scored,
    preferences,
    reward,
    sentence_candidates,
    text_candidates,
)
from app.domain.judging.judged_response import JudgedResponse, JudgedUnit
from app.domain.judging.verdict import VerdictStatus
from tests.unit.judged import a_grade, a_response, a_verdict

SCALE = Scale()
N_A, FAILED = VerdictStatus.NOT_APPLICABLE, VerdictStatus.FAILED


def candidate(name: str, *means: float) -> Candidate:
    scores = {f"judge-{n}": Scored(round(mean * 4), 4) for n, mean in enumerate(means)}
    return Candidate(f"text {name}", name, "model", None, scores)


def judged(*units: dict[str, int | VerdictStatus]) -> JudgedResponse:
    """A response of which each judge said this of each sentence: a score, or why there is none."""
    made = []
    for index, said in enumerate(units):
        verdicts = [
            a_verdict(judge, "E", each)
            if isinstance(each, VerdictStatus)
            else a_verdict(judge, "E", VerdictStatus.SCORED, each)
            for judge, each in said.items()
        ]
        made.append(JudgedUnit(index, (index, index + 1), f"sentence {index}", tuple(verdicts)))
    return a_response(
        id="r",
        model="m",
        persona="p",
        task="t",
        levels={"E": "high"},
        item="i",
        item_text="?",
        text="text",
        units=tuple(made),
    )


def names(found: list[Candidate], level: str = "high", margin: float = 0.0) -> list[tuple[str, str, float]]:
    pairs = preferences(found, SCALE, level, margin)
    return [(pair.chosen.response, pair.rejected.response, pair.margin) for pair in pairs]


class TestPairs:
    def test_the_best_is_paired_with_the_worst_and_each_text_is_in_one_pair_at_most(self) -> None:
        found = [candidate(str(mean), mean) for mean in (4, 1, 5, 3, 4.5)]
        assert names(found) == [("5", "1", 1.0), ("4.5", "3", 0.375)]

    def test_a_margin_below_the_least_is_no_pair_and_one_that_is_equal_is(self) -> None:
        found = [candidate(str(mean), mean) for mean in (5, 4, 3, 1)]
        assert names(found, margin=0.25) == [("5", "1", 1.0), ("4", "3", 0.25)]
        assert names(found, margin=0.26) == [("5", "1", 1.0)]

    def test_of_a_middle_level_both_ends_are_out_of_character(self) -> None:
        found = [candidate(str(mean), mean) for mean in (1, 3, 2.75, 5)]
        assert names(found, level="neutral") == [("3", "1", 0.5), ("2.75", "5", 0.5625)]

    def test_judges_must_be_of_one_mind_and_the_least_difference_is_the_margin(self) -> None:
        split, good, bad = candidate("split", 5, 1), candidate("good", 5, 4), candidate("bad", 1, 2)
        assert names([split, good, bad]) == [("good", "bad", 0.5)]

    def test_equal_candidates_keep_their_order(self) -> None:
        found = [candidate(name, mean) for name, mean in (("a", 5), ("b", 5), ("x", 1), ("y", 1))]
        assert names(found) == [("a", "x", 1.0), ("b", "y", 1.0)]

    def test_a_text_is_never_preferred_to_itself(self) -> None:
        same = [
            Candidate("the same", "a", "m", None, {"j": Scored(5, 1)}),
            Candidate("the same", "b", "m", None, {"j": Scored(1, 1)}),
        ]
        assert names(same) == []


class TestCandidates:
    @pytest.mark.parametrize(
        ("units", "expected"),
        [
            ([{"j": 5}, {"j": 4}], Scored(9, 2)),
            ([{"j": 5}, {"j": N_A}], Scored(5, 1)),
            ([{"j": 5}, {"j": FAILED}], None),
            ([{"j": 5}, {}], None),
            ([{"j": N_A}], None),
            ([], None),
        ],
    )
    def test_a_text_with_a_missing_score_is_none(
        self, units: list[dict[str, int | VerdictStatus]], expected: Scored | None
    ) -> None:
        found = [each.scores["j"] for each in text_candidates(judged(*units), "E", ["j"])]
        assert found == ([] if expected is None else [expected])

    def test_a_sentence_needs_every_judge(self) -> None:
        response = judged({"j": 5, "k": 4}, {"j": 5, "k": FAILED}, {"k": 1})
        assert [each.unit for each in sentence_candidates(response, "E", ["j", "k"])] == [0]
        assert [each.unit for each in sentence_candidates(response, "E", ["j"])] == [0, 1]

    def test_a_grade_counts_for_the_whole_text(self) -> None:
        response = judged()
        response.grades = (a_grade("j", VerdictStatus.SCORED, score=4, raw=None, justification=None),)
        (found,) = text_candidates(response, None, ["j"])
        assert found.scores == {"j": Scored(4, 1)}
        assert list(text_candidates(response, None, ["j", "k"])) == []


@pytest.mark.parametrize(
    ("level", "expected"),
    [("high", [0, 0.375, 0.75, 1, 1]), ("low", [1, 1, 0.75, 0.375, 0]), ("neutral", [0, 0.75, 1, 0.75, 0])],
)
def test_a_reward_falls_with_the_distance_from_the_level(level: str, expected: list[float]) -> None:
    assert [reward(SCALE, level, score) for score in range(1, 6)] == pytest.approx(expected)
