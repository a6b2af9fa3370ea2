"""How made-up personas are told apart and counted."""

import json
from itertools import combinations

import pytest

from app.domain.personagym.diversity import diversity
from app.domain.personagym.generation import (
    FEWEST,
    PORTION,
    NewPersonas,
    fruitless,
    portion,
    read_new_personas,
)
from app.domain.personagym.similarity import jaccard, jaccard_of_pairs, shingles

NURSE = "A 30-year-old nurse from Lagos who breeds pigeons"
FARMER = "A 41-year-old farmer from Oslo who plays the cello"
SAILOR = "A 63-year-old sailor from Kyoto who teaches chess"


class TestReading:
    def test_distinct_ones_are_accepted_up_to_the_number_wanted(self) -> None:
        reply = json.dumps([NURSE, FARMER, SAILOR])
        assert read_new_personas(reply, 2) == NewPersonas((NURSE, FARMER), {"surplus": 1})
        assert read_new_personas(reply, 5) == NewPersonas((NURSE, FARMER, SAILOR), {})

    @pytest.mark.parametrize(
        ("other", "reason"),
        [
            (NURSE.upper(), "duplicate"),
            (NURSE.replace("30", "31"), "alike"),
            (NURSE.replace("Lagos", "Lima"), "alike"),
            ("Nobody", "unusable"),
            ("x " * 600, "unusable"),
        ],
    )
    def test_what_is_not_used_is_counted_by_its_reason(self, other: str, reason: str) -> None:
        assert read_new_personas(json.dumps([other, FARMER]), 2, [NURSE]) == NewPersonas(
            (FARMER,), {reason: 1}
        )

    def test_one_like_another_of_the_same_reply_is_dropped_too(self) -> None:
        reply = json.dumps([NURSE, NURSE.replace("30", "44")])
        assert read_new_personas(reply, 2) == NewPersonas((NURSE,), {"alike": 1})

    def test_what_comes_after_enough_is_compared_with_nothing(self) -> None:
        reply = json.dumps([NURSE, NURSE, NURSE.replace("30", "44"), "x", SAILOR])
        assert read_new_personas(reply, 1) == NewPersonas((NURSE,), {"surplus": 4})

    def test_a_cut_reply_keeps_its_whole_personas(self) -> None:
        assert read_new_personas(json.dumps([NURSE, FARMER])[:-9], 2, cut=True).accepted == (NURSE,)

    @pytest.mark.parametrize("reply", ["", "I can't do that.", "<think>A nurse, a farmer"])
    def test_a_reply_without_a_list_is_not_readable(self, reply: str) -> None:
        assert read_new_personas(reply, 2) == NewPersonas((), {}, readable=False)


class TestAsking:
    def test_some_more_are_asked_for_than_are_missing_at_the_end(self) -> None:
        assert [portion(missing) for missing in (1, FEWEST, 7, PORTION, 500)] == [5, 5, 7, 20, 20]

    @pytest.mark.parametrize(
        ("sizes", "expected"),
        [([], 0), ([3], 0), ([0], 1), ([0, 0], 2), ([3, 3, 5], 0), ([3, 5, 5, 5], 2)],
    )
    def test_asks_in_a_row_without_a_new_one_are_counted(self, sizes: list[int], expected: int) -> None:
        assert fruitless(sizes) == expected


class TestDiversity:
    def test_says_how_alike_the_pairs_are(self) -> None:
        # {nurse, lagos, breeds, pigeons} and {nurse, lagos, plays, cello} share 2 of 6 words, the others none.
        found = diversity([NURSE, "A nurse from Lagos who plays the cello", SAILOR])
        assert found is not None
        assert (found.pairs, found.highest_attributes) == (3, 2 / 6)
        assert found.mean_attributes == pytest.approx((2 / 6) / 3)
        assert 0 < found.mean_wording < found.highest_wording < 1

    @pytest.mark.parametrize("texts", [[NURSE, FARMER, SAILOR, NURSE.upper()], ["", "", "x"], [NURSE, ""]])
    def test_all_pairs_at_once_are_as_alike_as_one_by_one(self, texts: list[str]) -> None:
        sets = [shingles(text) if text else frozenset[str]() for text in texts]
        one_by_one = [jaccard(first, second) for first, second in combinations(sets, 2)]
        assert jaccard_of_pairs(sets) == one_by_one
        assert one_by_one == [
            len(first & second) / len(first | second) if first | second else 1.0
            for first, second in combinations(sets, 2)
        ]

    @pytest.mark.parametrize("few", [[], [NURSE]])
    def test_there_is_none_without_a_pair(self, few: list[str]) -> None:
        assert diversity(few) is None
