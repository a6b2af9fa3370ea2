"""How the reasoner's replies are read."""

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.domain.personagym.replies import (
    ListRead,
    QuestionsRead,
    Selection,
    read_exemplars,
    read_list,
    read_questions,
    select_environments,
)

GOLDEN = Path(__file__).parents[3] / "golden"
LISTS = yaml.safe_load((GOLDEN / "personagym_lists.yaml").read_text(encoding="utf-8"))
EXEMPLARS = yaml.safe_load((GOLDEN / "personagym_exemplars.yaml").read_text(encoding="utf-8"))
FIVE = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}

PURSE = "You lose your purse at the market. What do you do first, and why?"
TRAIN = "Your night train stops in a tunnel. How do you calm the child beside you?"
GARDEN = "A neighbour picks your roses. What do you say to her the next morning?"

PLAIN_TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1).filter(lambda text: "\\" not in text),
    min_size=1,
    max_size=5,
)


class TestLabelledLists:
    @pytest.mark.parametrize("case", LISTS, ids=lambda case: repr(case["reply"])[:60])
    def test_reads_a_reply_as_a_careful_reader_does(self, case: dict[str, object]) -> None:
        found = read_list(str(case["reply"]), cut=bool(case.get("stopped", False)))
        if case["items"] is None:
            assert found is None
        else:
            assert isinstance(case["items"], list)
            assert found == ListRead(tuple(case["items"]), bool(case.get("cut", False)))

    def test_the_table_is_large(self) -> None:
        assert len(LISTS) >= 60


class TestAnyList:
    @given(texts=PLAIN_TEXTS)
    def test_json_is_read_as_it_is(self, texts: list[str]) -> None:
        assert read_list(f"Here: {json.dumps(texts)} Done.") == ListRead(tuple(texts))

    @given(reply=st.text(alphabet="[]{}'\"“”`,\\ \n#1.-ab\0\ud800", max_size=40))
    def test_any_reply_gives_clean_texts_or_nothing(self, reply: str) -> None:
        found = read_list(reply)
        for item in found.items if found else ():
            assert item == " ".join(item.split()) != ""
            assert "\0" not in item
            item.encode()

    @pytest.mark.parametrize(
        "piece",
        ["[", "['", "['a',", "[\"", "'", '",', "a'b ", "\\", "[#\n", "# ", "1. ", "- ", "{", "[{", "\n", " ", "“", "Score 1:"],
    )  # fmt: skip
    def test_a_hundred_kilobytes_are_read_at_once(self, piece: str) -> None:
        started = time.process_time()
        for reply in (piece * (100_000 // len(piece)), "['" + piece * (100_000 // len(piece))):
            read_list(reply)
            read_exemplars(reply)
        assert time.process_time() - started < 10.0  # some 0.2 s; quadratic time would take minutes


class TestEnvironments:
    POOL = ("Beach", "Farmer's Market", "Night Train")

    def test_case_space_and_punctuation_do_not_count(self) -> None:
        reply = '["night  TRAIN", "farmers market", "Farmer’s Market."]'
        assert select_environments(reply, self.POOL) == Selection(
            ("Night Train", "Farmer's Market"), 0, ok=True
        )

    def test_names_outside_the_pool_are_dropped_and_counted(self) -> None:
        assert select_environments("['Moon', 'Beach', 'Mars']", self.POOL) == Selection(
            ("Beach",), 2, ok=True
        )

    @pytest.mark.parametrize(
        ("reply", "expected"),
        [
            ("['Moon']", Selection((), 1, ok=False)),
            ("[]", Selection((), 0, ok=False)),
            ("I like all of them.", Selection((), 0, ok=False)),
            ("['Beach', 'Night Tr", Selection(("Beach",), 0, ok=False)),
        ],
    )
    def test_a_reply_that_names_nothing_or_is_cut_must_be_asked_again(
        self, reply: str, expected: Selection
    ) -> None:
        assert select_environments(reply, self.POOL) == expected


class TestQuestions:
    def test_good_ones_are_accepted_up_to_the_number_wanted(self) -> None:
        reply = json.dumps([PURSE, TRAIN, GARDEN])
        assert read_questions(reply, 2) == QuestionsRead((PURSE, TRAIN), 0, surplus=1)
        assert read_questions(reply, 4) == QuestionsRead((PURSE, TRAIN, GARDEN), 1)

    def test_the_same_words_are_a_duplicate_whatever_their_case_and_punctuation(self) -> None:
        reply = json.dumps([PURSE, PURSE.upper().replace("?", "?!"), TRAIN])
        assert read_questions(reply, 3) == QuestionsRead((PURSE, TRAIN), 1, duplicates=1)

    @pytest.mark.parametrize(
        "reworded",
        [PURSE.replace("?", ", really?"), PURSE.replace("purse", "wallet"), PURSE.replace("You lose", "You've lost")],
    )  # fmt: skip
    def test_almost_the_same_words_are_a_near_duplicate(self, reworded: str) -> None:
        reply = json.dumps([TRAIN, reworded])
        assert read_questions(reply, 2, [PURSE]) == QuestionsRead((TRAIN,), 1, near_duplicates=1)

    def test_another_question_in_the_same_setting_is_none(self) -> None:
        other = "You lose your purse at the market. Whom do you suspect, and what do you tell the police?"
        assert read_questions(json.dumps([other]), 1, [PURSE]).accepted == (other,)

    def test_fragments_and_novels_are_no_questions(self) -> None:
        assert read_questions(json.dumps(["Why?", "x" * 5000, PURSE]), 1) == QuestionsRead(
            (PURSE,), 0, unusable=2, faults=("is shorter than 10 or longer than 4,000 characters",)
        )

    def test_a_cut_reply_keeps_its_complete_questions(self) -> None:
        assert read_questions(json.dumps([PURSE, TRAIN])[:-20], 2) == QuestionsRead((PURSE,), 1)

    def test_a_reply_without_a_list_is_not_readable(self) -> None:
        assert read_questions("I can't.", 2) == QuestionsRead((), 2, readable=False)


class TestExemplars:
    @pytest.mark.parametrize("reply", EXEMPLARS["good"])
    def test_a_complete_set_is_read_by_score(self, reply: str) -> None:
        found = read_exemplars(reply)
        assert found == FIVE
        assert list(found) == [1, 2, 3, 4, 5]

    @pytest.mark.parametrize("reply", EXEMPLARS["broken"])
    def test_a_broken_set_is_none(self, reply: str) -> None:
        assert read_exemplars(reply) is None

    def test_the_table_is_large(self) -> None:
        assert len(EXEMPLARS["good"]) + len(EXEMPLARS["broken"]) >= 40

    def test_a_reply_that_stopped_for_length_is_broken_whatever_it_looks_like(self) -> None:
        assert read_exemplars(EXEMPLARS["good"][0], cut=True) is None

    def test_paragraphs_and_scores_within_an_example_stay(self) -> None:
        long = "I won 3 to 1.\n\nMy score was never better: ten."
        reply = "\n".join(
            f"Score {score}: Response - {long if score == 4 else text}" for score, text in FIVE.items()
        )
        assert read_exemplars(reply) == {**FIVE, 4: long}
