"""What of a bundle's rows is made again of its texts and replies, and where nothing can be said."""

from dataclasses import replace
from typing import Any

import pytest

from app.domain.instruments.dimension import Scale
from app.domain.jobs.bundle_reading import MOST_SIGNS, ReadAgain
from app.domain.jobs.resolve import resolve
from app.domain.jobs.stored_replies import StoredReplies
from app.domain.personagym.task import GRADE_SCALE
from app.instruments.hardened_loader import load_hardened
from app.instruments.rules import RULES
from tests.unit.domain.job_samples import CATALOG, draft

SPEC = resolve(draft(), CATALOG).spec
SEGMENTER = RULES.segmenter.load("punkt-en-v1")
TEXT: dict[str, Any] = {
    "status": "answered",
    "text": "One. Two.",
    "unit_starts": [0, 5],
    "unit_ends": [4, 9],
}
SAID: dict[str, Any] = {
    "judge": 0,
    "status": "scored",
    "score": 4,
    "raw": "4",
    "finish_reason": "stop",
    "group_size": 1,
}


class TestSentences:
    @pytest.mark.parametrize("changes", [{"text": "One: Two."}, {"unit_starts": [0], "unit_ends": [9]}])
    def test_of_another_text_are_found(self, changes: Any) -> None:
        again = ReadAgain(SPEC, SEGMENTER, replies=False)
        assert again.sentences(TEXT)
        assert not again.sentences(TEXT | changes)

    def test_that_the_segmenter_did_not_make_are_not_compared(self) -> None:
        given = replace(SPEC, given_units="sentences")
        for again in (
            ReadAgain(given, SEGMENTER, replies=True),
            ReadAgain(SPEC, None, replies=True),
        ):
            assert again.sentences(TEXT | {"text": "Other."})

    def test_are_compared_up_to_a_limit_of_work(self) -> None:
        again = ReadAgain(SPEC, SEGMENTER, replies=False)
        assert again.sentences(TEXT | {"text": "." * (MOST_SIGNS + 1)})
        assert again.sentences(TEXT | {"text": "Other."})


class TestReplies:
    @pytest.mark.parametrize(
        "changes",
        [{"raw": "5"}, {"raw": "I do not know"}, {"score": 3}, {"status": "unparsed", "score": None}],
    )
    def test_that_say_something_else_are_found(self, changes: Any) -> None:
        again = ReadAgain(SPEC, None, replies=True)
        assert again.verdict(SAID, GRADE_SCALE)
        assert again.grade(SAID)
        assert not again.verdict(SAID | changes, GRADE_SCALE)
        assert not again.grade(SAID | changes)

    def test_that_were_cut_off_are_read_as_such(self) -> None:
        ten = Scale(minimum=0, maximum=10, not_applicable=11)
        cut = SAID | {"raw": "1", "score": 1, "finish_reason": "length"}
        again = ReadAgain(SPEC, None, replies=True)
        assert not again.verdict(cut, ten)
        assert again.verdict(cut | {"status": "unparsed", "score": None}, ten)

    @pytest.mark.parametrize(
        "changes",
        [
            {"raw": None},
            {"finish_reason": None},
            {"finish_reason": "content_filter"},
            {"raw": "S2: 4", "group_size": 3},
        ],
    )
    def test_that_are_missing_or_that_a_filter_stopped_are_not_read(self, changes: Any) -> None:
        again = ReadAgain(SPEC, None, replies=True)
        assert again.verdict(SAID | {"raw": "5"} | changes, GRADE_SCALE)

    def test_about_several_sentences_are_read_part_by_part(self) -> None:
        again = ReadAgain(SPEC, None, replies=True)
        for part in ("S2: 4", "4", '"S2": 4', "2. 4", "- S2 - 4) often"):
            assert again.verdict(SAID | {"raw": part, "group_size": 3}, GRADE_SCALE), part
        assert not again.verdict(SAID | {"raw": "S4: 2", "group_size": 3}, GRADE_SCALE)
        repaired = {"raw": None, "repair_raw": "S2: 4", "unread": "no_answer", "group_size": 3}
        # A first reply that could not be used as a whole is no part: the follow-up counts.
        for raw in (None, "S9: 2", "2", "S1: 2", "2. 2", "S2: 2\nS9: 1", "S2: hard to say"):
            assert again.verdict(SAID | repaired | {"raw": raw}, GRADE_SCALE), raw
            assert not again.verdict(SAID | repaired | {"raw": raw, "score": 2}, GRADE_SCALE), raw
        cut = SAID | repaired | {"raw": "S2: 2", "unread": "cut_off"}
        assert again.verdict(cut, GRADE_SCALE)

    @pytest.mark.parametrize("repair", ["S2: 4", "4"])
    @pytest.mark.parametrize("first", ["S2: 2", "S2 - 2) rarely", '"S2": 2'])
    def test_a_first_part_that_the_rules_now_read_counts_before_the_follow_up(
        self, first: str, repair: str
    ) -> None:
        row = SAID | {"raw": first, "repair_raw": repair, "unread": "no_answer", "group_size": 3}
        found = StoredReplies(SPEC).verdict(row, GRADE_SCALE)
        assert found is not None
        assert (found.verdict.score, found.verdict.unread) == (2, None)

    @pytest.mark.parametrize(
        ("changes", "status", "score"),
        [
            ({"raw": "It is hard to say.", "repair_raw": "3"}, "scored", 3),
            ({"raw": "It is hard to say.", "repair_raw": "I would rather not."}, "unparsed", None),
            ({"raw": "It is hard to say.", "repair_raw": "I can't rate this."}, "unparsed", None),
            ({"raw": "Score: 4", "repair_raw": "3"}, "scored", 4),
            ({"raw": "4", "repair_raw": "3", "unread": "cut_off"}, "scored", 4),
            ({"raw": "So 4", "repair_raw": "3", "unread": "cut_off"}, "scored", 3),
            ({"raw": "?", "repair_raw": "So 3", "finish_reason": "length"}, "unparsed", None),
        ],
    )
    def test_to_a_follow_up_count_where_the_first_cannot_be_read(
        self, changes: Any, status: str, score: int | None
    ) -> None:
        found = StoredReplies(SPEC).verdict(SAID | changes, GRADE_SCALE)
        assert found is not None
        assert (found.verdict.status, found.verdict.score) == (status, score)
        assert ReadAgain(SPEC, None, replies=True).verdict(
            SAID | changes | {"status": status, "score": score}, GRADE_SCALE
        )

    def test_of_another_release_or_with_key_words_are_not_read(self) -> None:
        hardened = replace(SPEC, hardening=load_hardened())
        for again in (ReadAgain(SPEC, None, replies=False), ReadAgain(hardened, None, replies=True)):
            assert again.verdict(SAID | {"raw": "5"}, GRADE_SCALE)
