"""How judges' replies are read."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import UNPARSED, Verdict, VerdictStatus, parse_verdict

PAPER = Scale()
SCALES = st.sampled_from(
    [
        PAPER,
        Scale(1, 7, ("low", "high"), 9),
        Scale(0, 10, not_applicable=99),
        Scale(-3, 3, not_applicable=9),
        Scale(0, 1, ("no", "yes"), -1),
    ]
)
REPLIES = st.one_of(
    st.text(),
    st.text(alphabet=' 0123456789.,/-+*()[]{}":\n§½④４٤', max_size=30),
    st.lists(
        st.sampled_from(
            [
                "4",
                "5",
                "1 to 5",
                "4/5",
                "Score: ",
                "not ",
                "I would rate ",
                "this is a ",
                ". ",
                "\n",
                "<think>",
                "</think>",
                "-",
            ]
        ),
        max_size=8,
    ).map("".join),
)


class TestAnyReply:
    @given(raw=REPLIES, scale=SCALES)
    def test_gives_a_score_on_the_scale_or_none(self, raw: str, scale: Scale) -> None:
        verdict = parse_verdict(raw, scale)
        if verdict.status is VerdictStatus.SCORED:
            assert verdict.score is not None
            assert scale.minimum <= verdict.score <= scale.maximum
        else:
            assert verdict.score is None

    @given(raw=st.text(st.characters(exclude_categories=["Nd"])), scale=SCALES)
    def test_prose_without_a_digit_is_never_scored(self, raw: str, scale: Scale) -> None:
        assert parse_verdict(raw, scale).status is not VerdictStatus.SCORED

    @given(raw=REPLIES)
    def test_a_score_is_a_number_that_the_reply_contains(self, raw: str) -> None:
        score = parse_verdict(raw, PAPER).score
        assert score is None or any(character.isdecimal() and int(character) == score for character in raw)

    @given(
        first=st.integers(1, 5),
        second=st.integers(1, 5),
        between=st.sampled_from([" or ", ", ", "\n", "; no, ", " - "]),
    )
    def test_two_different_scores_are_never_one(self, first: int, second: int, between: str) -> None:
        verdict = parse_verdict(f"Score: {first}{between}{second}", PAPER)
        assert verdict.score is None or first == second

    @given(number=st.integers())
    def test_a_bare_number_is_itself_or_nothing(self, number: int) -> None:
        verdict = parse_verdict(str(number), PAPER)
        if 1 <= number <= 5:
            assert verdict == Verdict(VerdictStatus.SCORED, number)
        elif number == 9:
            assert verdict == Verdict(VerdictStatus.NOT_APPLICABLE)
        else:
            assert verdict == UNPARSED


class TestHostileReplies:
    @pytest.mark.parametrize(
        "piece",
        ["4 ", "4. ", "x4. ", "4\n", "1-", "1 to ", "4/5 ", "9" * 50, " ", "\n", ":\n", "*", "(", '"', '" ,', "½", "e\u0301",
         "<think>", "score: ", "score for ", "i rate it: ", "i cannot ", "sorry ", "not ", "two ", ": #", "* ", "\n "],
    )  # fmt: skip
    def test_a_hundred_kilobytes_are_read_at_once(self, piece: str) -> None:
        body = piece * (100_000 // len(piece))
        started = time.process_time()
        for raw in (body, body + "4", "4" + body, body + " Score: 4", "[[4]]" + body + "x"):
            parse_verdict(raw, PAPER)
        assert time.process_time() - started < 10.0  # some 0.05 s; quadratic time would take minutes

    def test_an_answer_far_behind_the_beginning_of_its_sentence_is_no_answer(self) -> None:
        assert (
            parse_verdict("It is not at all so " + "very " * 100 + "that the score is 4", PAPER) == UNPARSED
        )

    def test_an_endlessly_repeated_score_is_no_answer(self) -> None:
        assert parse_verdict("4\n" * 5, PAPER) == Verdict(VerdictStatus.SCORED, 4)
        assert parse_verdict("4\n" * 500, PAPER) == UNPARSED
