"""Replies about several sentences: no line shifts another, and what can't be read is said to be so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.instruments.dimension import Scale
from app.domain.judging.grouped_reply import read_grouped
from app.domain.judging.verdict import VerdictStatus

SCALE = Scale()
ASIDE = {
    VerdictStatus.NOT_APPLICABLE: 9,
    VerdictStatus.UNPARSED: None,
    VerdictStatus.REFUSED: "refused",
}


def read(raw: str, count: int = 3) -> list[int | str | None]:
    """Scores; 9 for not applicable, ``None`` for unparsed."""
    return [
        reading.verdict.score if reading.verdict.score is not None else ASIDE[reading.verdict.status]
        for reading in read_grouped(raw, count, SCALE)
    ]


class TestReadings:
    @pytest.mark.parametrize(
        "raw",
        [
            "S1: 4\nS2: 9\nS3: 1",
            "s1 = 4\r\ns2 = 9\r\ns3 = 1\r\n",
            "Here are the numbers:\n\n**S1:** 4\n**S2**: 9\n- S3: **1**\n\nI hope that helps!",
            "S1: 4, S2: 9, S3: 1",
            "S1: 4 S2: 9  S3: 1",
            "s1=4 s2=9 s3=1\n",
            '```json\n{"S1": 4, "S2": 9, "S3": "1"}\n```',
            "| S1 | 4 |\n| S2 | 9 |\n| S3 | 1 |",
            "S1 4\nS2 9\nS3 1",
            "S1) 4\nS2) 9\nS3) 1",
            "S1 - 4\nS2 - 9\nS3 - 1",
            "S3: 1\nS1: 4\nS2: 9",
            "S1: 4) Moderately open-minded.\nS2: None of the above\nS3: 1/5",
            "<think>S1 is a 2, surely. S1: 2</think>\nS1: 4\nS2: 9\nS3: 1",
            "1: 4\n2: 9\n3: 1",
            "1. 4\n2. 9\n3. 1",
        ],
    )
    def test_forms_of_the_same_answer(self, raw: str) -> None:
        assert read(raw) == [4, 9, 1]

    @pytest.mark.parametrize(
        ("raw", "expected"),
        [
            ("S1: 4\nS3: 1", [4, None, 1]),
            ("S1: 4\nS2: 3\nS2: 2\nS3: 1", [4, None, 1]),
            ("S1: 4\nS2: 3\nS2: 3\nS3: 1", [4, None, 1]),
            ("S1: 4\nS2: 3 or 4\nS3: 1", [4, None, 1]),
            ("S1: 4\nS2: 7\nS3: 1", [4, None, 1]),
            ("S1: 4\nS2:\nS3: 1", [4, None, 1]),
            ("S1: 4\nS2 is like S1: 5\nS3: 1", [None, None, 1]),
            ("S1: 4\nS2: I can't rate this one.\nS3: 1", [4, "refused", 1]),
            ("S1: 4\nS2: 3. Wait, no: 2.\nS3: 1", [4, None, 1]),
            ("S1: 4 S2: 7 S3: 1", [4, None, 1]),
            ("S1: 4 S3: 1 S3: 1", [4, None, None]),
        ],
        ids=lambda value: value.replace("\n", " ") if isinstance(value, str) else "",
    )
    def test_a_bad_line_costs_its_own_sentence_and_shifts_no_other(
        self, raw: str, expected: list[int | str | None]
    ) -> None:
        assert read(raw) == expected

    @pytest.mark.parametrize(
        "raw",
        [
            "4\n9\n1",
            "4, 9, 1",
            "S0: 4\nS1: 9\nS2: 1",
            "S1: 4\nS2: 9\nS3: 1\nS4: 2",
            "1: 4\n3: 1",
            "1: 4\n2: 9\n3: 1\n4: 2",
            "4) Moderately\n2) Neither\n1) Very",
            "",
        ],
    )
    def test_a_reply_that_counts_otherwise_is_not_used_at_all(self, raw: str) -> None:
        assert read(raw) == [None, None, None]

    def test_a_refusal_is_one_for_every_sentence(self) -> None:
        assert read("I'm sorry, but I can't rate these.") == ["refused"] * 3

    def test_each_sentence_keeps_its_own_words(self) -> None:
        found = read_grouped("Sure!\nS1: 4\nS2: 3 or 4\nS3: 1 (very)", 3, SCALE)
        assert [reading.raw for reading in found] == ["S1: 4", "S2: 3 or 4", "S3: 1 (very)"]
        assert [reading.usable for reading in found] == [True, False, True]

    def test_the_words_of_a_reply_that_can_t_be_used_stay_with_the_first(self) -> None:
        found = read_grouped("4\n9\n1", 3, SCALE)
        assert [reading.raw for reading in found] == ["4\n9\n1", None, None]

    @given(st.lists(st.sampled_from([1, 2, 3, 4, 5, 9]), min_size=2, max_size=50), st.data())
    def test_whatever_happens_to_some_lines_the_others_stay(
        self, numbers: list[int], data: st.DataObject
    ) -> None:
        lines = [f"S{n}: {number}" for n, number in enumerate(numbers, 1)]
        struck = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=len(lines) - 1))
        for place in struck:
            harm = data.draw(st.sampled_from(["", "?", "{0}\n{0}", "{0} or 5 or 1", "S"]))
            lines[place] = harm.format(lines[place])
        expected = [None if n in struck else number for n, number in enumerate(numbers)]
        assert read("\n".join(lines), len(numbers)) == expected

    @given(st.lists(st.sampled_from([1, 2, 3, 4, 5, 9]), min_size=2, max_size=50), st.data())
    def test_no_sentence_gets_the_number_of_another(self, numbers: list[int], data: st.DataObject) -> None:
        lines = [f"S{n}: {number}" for n, number in enumerate(numbers, 1)]
        for place in data.draw(st.sets(st.integers(0, len(lines) - 1))):
            lines[place] = data.draw(st.sampled_from(["0", "3", "Score: 2", "S: 4", "4) Moderately"]))
        found = read("\n".join(lines), len(numbers))
        assert all(one in {number, None} for one, number in zip(found, numbers, strict=True))

    def test_the_last_answer_of_a_reply_that_was_cut_off_may_lack_a_digit(self) -> None:
        wide = Scale(1, 10, not_applicable=99)
        found = read_grouped("S1: 7\nS2: 1", 2, wide, cut_off=True)
        assert [reading.verdict.score for reading in found] == [7, None]

    @pytest.mark.parametrize(
        ("raw", "labels", "expected"),
        [
            ("S2: 4\nS4: 1", [2, 4], [4, 1]),
            ("S4: 1", [2, 4], [None, 1]),
            ("S1: 5\nS2: 4\nS3: 5\nS4: 1", [2, 4], [4, 1]),
            ("2: 4\n4: 1", [2, 4], [4, 1]),
            ("[4, 1]", [2, 4], [4, 1]),
            ("4", [3], [4]),
            ("S3: 9", [3], [9]),
            ("The answer is 4.", [3], [4]),
            ("S1: 4\nS2: 1", [2, 4], [None, None]),
            ("S1: 4", [3], [None]),
            ("1: 4\n2: 1", [2, 4], [None, None]),
            ("[4, 1, 2]", [2, 4], [None, None]),
            ("4, 1", [2, 4], [None, None]),
            ("1. The third sentence is cheerful.", [3], [None]),
        ],
    )
    def test_a_follow_up_gives_the_missing_numbers(
        self, raw: str, labels: list[int], expected: list[int | None]
    ) -> None:
        found = [reading.verdict for reading in read_grouped(raw, 4, SCALE, labels=labels)]
        assert [verdict.score or ASIDE[verdict.status] for verdict in found] == expected

    @given(st.text(alphabet="S1234567890:;,| \n-*{}x", max_size=200))
    def test_any_text_gives_a_reading_for_each_sentence(self, raw: str) -> None:
        assert len(read_grouped(raw, 4, SCALE)) == 4
