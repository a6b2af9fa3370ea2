import re
from collections.abc import Sequence

import pytest
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

from simulator.bank import CONSISTENCY, DIMENSIONS, SCORES, Truth, load_bank, normalise
from simulator.draw import Draws

# Far more than any splitter knows: a sentence must not even end in a word that looks like an abbreviation.
ABBREVIATIONS = """
    dr mr mrs ms prof jr sr st e.g i.e etc vs p.m a.m u.s u.k ph.d no inc co ltd fig vol approx dept est gen gov
    mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec art ft lb oz min sec hr mass pa
"""
STARTERS = "i the it he she we you they my this that there but and so in if what when why how let by"


def every_wording() -> list[str]:
    bank = load_bank()
    trait = [wording for thoughts in bank.trait.values() for thought in thoughts for wording in thought]
    openings = [sentence for _, sentences in bank.openings for sentence in sentences]
    return [*trait, *bank.neutral, *every_consistent_wording(), *openings, *bank.refusals]


def every_consistent_wording() -> list[str]:
    return [
        wording
        for thoughts in load_bank().consistency.values()
        for thought in thoughts
        for wording in thought
    ]


def punkt(starters: str) -> PunktSentenceTokenizer:
    parameters = PunktParameters()
    parameters.abbrev_types = set(ABBREVIATIONS.split())
    parameters.sent_starters = set(starters.split())
    return PunktSentenceTokenizer(parameters)


def shuffled(sentences: Sequence[str]) -> list[str]:
    draws = Draws("shuffled")
    return sorted(sentences, key=lambda _: draws.unit())


class TestSentences:
    @pytest.mark.parametrize("starters", ["", STARTERS], ids=["no starters", "many starters"])
    @pytest.mark.parametrize("normalised", [False, True], ids=["as written", "normalised"])
    def test_every_sentence_stays_one_unit_in_a_text(self, normalised: bool, starters: str) -> None:
        sentences = shuffled(every_wording())
        if normalised:
            sentences = [normalise(sentence) for sentence in sentences]
        assert punkt(starters).tokenize(" ".join(sentences)) == sentences

    def test_every_score_of_every_dimension_has_variety(self) -> None:
        thoughts = load_bank().trait
        assert set(thoughts) == {(dimension, score) for dimension in DIMENSIONS for score in SCORES}
        assert min(map(len, thoughts.values())) >= 14
        assert len(load_bank().neutral) >= 40

    def test_every_degree_of_consistency_has_variety(self) -> None:
        thoughts = load_bank().consistency
        assert set(thoughts) == {1, 2, 3, 4, 5, 9}
        assert min(map(len, thoughts.values())) >= 16

    def test_a_sentence_about_consistency_ends_where_its_first_full_stop_does(self) -> None:
        inside = [sentence[:-1] for sentence in every_consistent_wording()]
        assert not [sentence for sentence in inside if re.search(r"[.!?](\s|$)", sentence)]

    def test_a_sentence_about_consistency_names_no_number_and_no_machine(self) -> None:
        text = " ".join(every_consistent_wording())
        assert not re.search(r"\d|\bAI\b|\bmodel\b", text)

    def test_no_sentence_is_said_twice(self) -> None:
        sentences = every_wording()
        assert len({normalise(sentence) for sentence in sentences}) == len(sentences)

    def test_the_bank_holds_what_makes_splitting_hard(self) -> None:
        text = " ".join(every_wording())
        assert all(
            mark in text
            for mark in ("Dr.", "Mr.", "e.g.", "p.m.", "U.S.", "...", "“", "?", "!", "\u2019", "—", ";")
        )

    def test_a_lead_keeps_the_capital_of_i_and_lowers_others(self) -> None:
        wordings = {wording for thought in load_bank().trait["C", 3] for wording in thought}
        assert "Honestly, I'm on time about as often as I'm a little late." in wordings
        assert "Honestly, my desk is neither tidy nor a real mess." in wordings


class TestTruth:
    def test_a_sentence_is_known_as_written_and_normalised(self) -> None:
        sentence = "I\u2019d call my imagination average — it works when I need it."
        replaced = "I'd call my imagination average -- it works when I need it."
        assert load_bank().truth(sentence) == load_bank().truth(replaced) == Truth("O", 3)

    def test_a_sentence_about_one_dimension_is_not_applicable_to_the_others(self) -> None:
        assert [Truth("E", 4).asked_for(dimension) for dimension in DIMENSIONS] == [9, 9, 4, 9, 9]

    def test_a_neutral_sentence_is_not_applicable_to_any(self) -> None:
        truth = load_bank().truth("The match ended two to one.")
        assert truth is not None
        assert [truth.asked_for(dimension) for dimension in DIMENSIONS] == [9, 9, 9, 9, 9]

    def test_consistency_is_not_applicable_to_the_five_dimensions(self) -> None:
        truth = load_bank().truth("I might do it my way or the common way, since both would work.")
        assert truth == Truth(CONSISTENCY, 3)
        assert [truth.asked_for(dimension) for dimension in DIMENSIONS] == [9, 9, 9, 9, 9]
        assert truth.asked_for(CONSISTENCY) == 3

    def test_a_foreign_sentence_has_no_truth(self) -> None:
        assert load_bank().truth("I was not written by the simulator.") is None
