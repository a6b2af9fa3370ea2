"""Replies about several sentences: the truth of each, but for what the settings spoil."""

import pytest

from simulator.bank import load_bank
from simulator.conversation import Reply
from simulator.grouped import is_grouped_prompt, reply_to_several
from simulator.judge import reply_to
from simulator.profiles import Judge
from simulator.roles import recognise
from tests.unit.simulator.prompts import OPTIONS, conversation, essay_score

SENTENCES = [wordings[0] for score in (1, 2, 3, 4) for wordings in load_bank().trait["E", score][:3]]


def prompt(sentences: list[str], options: str = OPTIONS["E"]) -> str:
    listed = "\n".join(f"<S{n}>{sentence}</S{n}>" for n, sentence in enumerate(sentences, 1))
    end = f"Reply with {len(sentences)} lines, from S1 to S{len(sentences)}:"
    return f"You will rate numbered sentences.\n\nOptions: {options}\n\nRate them:\n\n{listed}\n\n{end}"


def answer(sentences: list[str], *, judge: Judge = Judge(), bias: float = 0.0, seed: int = 0) -> Reply:  # noqa: B008 - frozen
    return reply_to_several(
        prompt(sentences), judge=judge, bank=load_bank(), key=(seed, "a judge"), position_bias=bias
    )


def given(reply: Reply) -> list[int | None]:
    found = reply.record["sentences"]
    assert isinstance(found, list)
    return [sentence["given"] for sentence in found]


class TestReplies:
    def test_each_sentence_has_the_score_that_it_has_alone(self) -> None:
        alone = [
            reply_to(essay_score(sentence, OPTIONS["E"]), judge=Judge(), bank=load_bank(), key=(0, "a judge"))
            for sentence in SENTENCES
        ]
        reply = answer(SENTENCES)
        assert reply.text.splitlines() == [f"S{n}: {one.text}" for n, one in enumerate(alone, 1)]
        assert given(reply) == [one.record["given"] for one in alone]

    def test_it_is_recognised_as_a_judge_s_task(self) -> None:
        asked = conversation("", prompt(SENTENCES))
        assert is_grouped_prompt(asked.prompt)
        assert recognise(asked) == "judge"
        assert not is_grouped_prompt(essay_score(SENTENCES[0], OPTIONS["E"]))

    def test_later_sentences_are_scored_too_high_as_often_as_is_set(self) -> None:
        higher = [0] * len(SENTENCES)
        for seed in range(300):
            scores = zip(given(answer(SENTENCES, bias=0.6, seed=seed)), given(answer(SENTENCES)), strict=True)
            for place, (biased, true) in enumerate(scores):
                assert (biased or 0) - (true or 0) in {0, 1}
                higher[place] += biased != true
        assert higher[0] == 0
        assert higher[-1] / 300 == pytest.approx(0.6, abs=0.09)  # three standard deviations
        assert higher[6] / 300 == pytest.approx(0.6 * 6 / 11, abs=0.09)

    def test_a_line_that_holds_no_number_may_be_missing_or_stand_twice(self) -> None:
        replies = [answer(SENTENCES, judge=Judge(unparsable=0.5), seed=seed) for seed in range(30)]
        assert {len(reply.text.splitlines()) > len(SENTENCES) for reply in replies} == {True, False}
        assert 0.4 < sum(given(reply).count(None) for reply in replies) / (30 * len(SENTENCES)) < 0.6
