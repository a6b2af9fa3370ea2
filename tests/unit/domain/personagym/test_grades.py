"""How evaluators' replies to a rubric are read."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.judging.verdict import UNPARSED, Verdict, VerdictStatus
from app.domain.personagym.grades import read_final_score


class TestJustification:
    @pytest.mark.parametrize(
        ("reply", "justification"),
        [
            ("It fits. The tone is right. Therefore, the final score is 4.", "It fits. The tone is right."),
            ("It fits.\n\nTherefore, the final score is **4**.", "It fits."),
            ("Therefore, the final score is 4.", ""),
            ("Therefore, the final score is 4. It fits.", "It fits."),
            ("<think>Hm.</think>It fits. Therefore, the final score is 4.", "It fits."),
            ("It fits. Or not.", "It fits. Or not."),
        ],
    )
    def test_is_the_reply_without_its_final_sentence(self, reply: str, justification: str) -> None:
        assert read_final_score(reply).justification == justification


class TestAnyReply:
    @given(
        first=st.integers(1, 5),
        second=st.integers(1, 5),
        between=st.sampled_from([" ", "\n", " It is vague. "]),
    )
    def test_two_different_final_scores_are_none(self, first: int, second: int, between: str) -> None:
        reply = f"Therefore, the final score is {first}.{between}Therefore, the final score is {second}."
        expected = Verdict(VerdictStatus.SCORED, first) if first == second else UNPARSED
        assert read_final_score(reply).verdict == expected

    @given(number=st.integers())
    def test_a_number_is_itself_or_nothing(self, number: int) -> None:
        verdict = read_final_score(f"Therefore, the final score is {number}.").verdict
        assert verdict == (Verdict(VerdictStatus.SCORED, number) if 1 <= number <= 5 else UNPARSED)

    @given(reply=st.text())
    def test_any_text_gives_a_score_on_the_scale_or_none(self, reply: str) -> None:
        verdict = read_final_score(reply).verdict
        assert verdict.score in ({1, 2, 3, 4, 5} if verdict.status is VerdictStatus.SCORED else {None})

    @pytest.mark.parametrize(
        "piece",
        ["the final score is 4. ", "final score ", "final ", "score: ", " ", "\n", "4", ". ", "*", "(", "is ", "\"", "</think>"],
    )  # fmt: skip
    def test_a_hundred_kilobytes_are_read_at_once(self, piece: str) -> None:
        body = piece * (100_000 // len(piece))
        started = time.process_time()
        for reply in (
            body,
            f"{body} Therefore, the final score is 4.",
            f"Therefore, the final score is 4. {body}",
        ):
            read_final_score(reply)
        assert time.process_time() - started < 10.0  # some 0.1 s; quadratic time would take minutes
