from itertools import combinations

import pytest

from app.domain.personagym.diversity import distinct, likeness
from app.instruments.personagym_loader import load_personagym

PAPER = [persona.description for persona in load_personagym("v1").personas.values()]
HIKER = "A 72-year-old doctor from Tokyo who loves hiking"


class TestLikeness:
    @pytest.mark.parametrize(
        "other",
        [
            "A 70-year-old doctor from Tokyo who loves hiking",
            "An 18 year old Doctor, from TOKYO, who loves hiking.",
            "A doctor from Tokyo, aged 33, who is loving hiking",
            "A 72-year-old doctor from Oslo who loves hiking",
            "A 72-year-old nurse from Tokyo who loves hiking",
        ],
    )
    def test_another_age_or_one_attribute_less_makes_no_other_person(self, other: str) -> None:
        assert likeness(other, [HIKER]) is not None

    @pytest.mark.parametrize(
        "other",
        [
            "A 72-year-old nurse from Oslo who loves hiking",
            "A 72-year-old doctor from Oslo who collects stamps",
            "A homosexual Black Atheist woman",
        ],
    )
    def test_a_single_attribute_in_common_is_no_likeness(self, other: str) -> None:
        assert likeness(other, [HIKER]) is None

    def test_says_whom_it_is_like_and_how_much(self) -> None:
        # {doctor, tokyo, loves, hiking} and {doctor, oslo, loves, hiking} share 3 of 5 words.
        found = likeness("A 40-year-old doctor from Oslo who loves hiking", [PAPER[0], HIKER])
        assert found is not None
        assert (found.description, found.attributes) == (HIKER, 3 / 5)

    def test_works_without_spaces_between_words(self) -> None:
        assert (
            likeness("東京出身の七十歳の医者で登山が大好きです", ["東京出身の八十歳の医者で登山が大好きです"])
            is not None
        )
        assert likeness("東京出身の七十歳の医者で登山が大好きです", ["リマの若い漁師、夜は詩を書く"]) is None

    @pytest.mark.parametrize("nothing", ["", "  ", "A 40-year-old who is", "!?"])
    def test_a_description_of_nothing_is_never_distinct(self, nothing: str) -> None:
        assert likeness(nothing, [HIKER]) is not None


class TestThePapersPersonas:
    def test_sixteen_pairs_of_1225_are_alike(self) -> None:
        alike = [pair for pair in combinations(PAPER, 2) if likeness(pair[0], [pair[1]])]
        assert len(alike) == 16

    def test_forty_of_the_fifty_are_distinct(self) -> None:
        assert len(distinct(PAPER)) == 40

    def test_the_first_of_a_pair_is_kept_and_what_is_accepted_already_counts(self) -> None:
        # gym-17 and gym-21 are the doctors of 72 and 70 from Tokyo.
        assert distinct([PAPER[16], PAPER[20]]) == (PAPER[16],)
        assert distinct([PAPER[20]], [PAPER[16]]) == ()
