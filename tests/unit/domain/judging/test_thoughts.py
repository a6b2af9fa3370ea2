"""What of a reply is thoughts, and what is the answer."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.domain.instruments import segmentation
from app.domain.instruments.dimension import Scale
from app.domain.judging.hardening import MAX_REPLY_CHARACTERS
from app.domain.judging.thoughts import MAX_CHARACTERS, Reply, after_thoughts, split_thoughts
from app.domain.judging.verdict import VerdictStatus, parse_verdict

GOLDEN: Any = yaml.safe_load(
    (Path(__file__).parents[3] / "golden" / "thoughts.yaml").read_text(encoding="utf-8")
)
TAGS = st.sampled_from(
    [
        "<think>",
        "</think>",
        "<thinking>",
        "</thinking>",
        "[THINK]",
        "[/THINK]",
        "<thought>",
        "</thought>",
        "I_stay.",
        "<",
        "4",
    ]
)
HARMONY = st.sampled_from(
    [
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        "<|end|>",
        "<|start|>assistant",
        "analysis",
        "assistantfinal",
    ]
)
TAGGED = st.lists(TAGS | st.sampled_from(" \nx"), max_size=12).map("".join)
TEXTS = st.lists(TAGS | HARMONY | st.text(max_size=5), max_size=12).map("".join)
PLAIN = st.text().filter(lambda text: not set(text) & set("<◁[▷]") and not text.startswith("analysis"))


class TestGolden:
    @pytest.mark.parametrize("case", GOLDEN["cut"], ids=lambda case: case["form"])
    def test_thoughts_are_kept_apart(self, case: dict[str, Any]) -> None:
        assert split_thoughts(case["text"]) == Reply(case["thoughts"], case["answer"])

    @pytest.mark.parametrize("text", GOLDEN["whole"])
    def test_what_only_looks_like_thoughts_stays(self, text: str) -> None:
        assert split_thoughts(text) == Reply(None, text)

    @pytest.mark.parametrize("case", GOLDEN["cut"], ids=lambda case: case["form"])
    def test_a_judge_s_score_is_read_from_the_answer_alone(self, case: dict[str, Any]) -> None:
        if case["answer"] and case["answer"] not in case["text"]:
            return  # an answer around its thoughts is no score
        if case["answer"]:
            reply = case["text"].replace(case["answer"], "2")
            assert parse_verdict(split_thoughts(reply).answer, Scale()).score == 2
        else:
            assert parse_verdict(after_thoughts(case["text"]), Scale()).status is VerdictStatus.UNPARSED


class TestAnyText:
    @given(TAGGED)
    def test_the_answer_holds_no_further_thoughts(self, text: str) -> None:
        answer = split_thoughts(text).answer
        assert split_thoughts(answer).answer == answer

    @given(TEXTS)
    def test_nothing_is_made_up(self, text: str) -> None:
        found = split_thoughts(text)
        assert len(found.answer) + len(found.thoughts or "") <= len(text)

    @given(PLAIN)
    def test_a_text_without_tags_is_the_answer_as_it_is(self, text: str) -> None:
        assert split_thoughts(text) == Reply(None, text)

    @given(PLAIN, PLAIN)
    def test_what_stands_in_tags_before_an_answer_is_thoughts(self, thoughts: str, answer: str) -> None:
        assert split_thoughts(f"<think>{thoughts}</think>{answer}") == Reply(
            thoughts.strip() or None, answer.lstrip()
        )


class TestHostileText:
    @pytest.mark.parametrize(
        "text",
        [
            "<think>" * 80_000,
            "</think>" * 70_000,
            "<thinking><think></thinking></think>" * 16_000,
            "x<think>" * 70_000,
            " " * 290_000 + "</think>" + " " * 290_000,
            "<|channel|>analysis<|message|><" * 18_000,
            "<|channel|>" * 50_000,
            "<|start|>" + "<|channel|>a" * 49_000,
            "<" * 600_000,
            "<think></think>" * 40_000,
            "Sure.\n" + "<think>a</think>, " * 30_000,
            "<s>" + "x </s>" * 90_000,
            "<|channel|>final<|message|>" + " " * 500_000,
            "<|end|>" + " " * 500_000,
            "<answer>" * 70_000,
            "[thinking]" * 50_000,
            "{thinking}" * 50_000,
            "(think){/think}" * 35_000,
            "[INST]" * 90_000,
            "<reasoning>x. <answer>" * 25_000,
            "<|think:start|>" * 40_000,
            "Here is my thought process:" * 20_000,
            "Here is my thought process:Here is my response:" * 12_000,
        ],
        ids=lambda text: text[:24].strip(),
    )
    def test_is_read_in_linear_time(self, text: str) -> None:
        assert len(text) <= MAX_CHARACTERS
        started = time.process_time()
        split_thoughts(text)
        assert time.process_time() - started < 5.0  # some 0.1 s; quadratic time would take minutes

    def test_that_is_too_long_to_be_judged_stays_as_it_is(self) -> None:
        text = "<think>" + "x" * MAX_CHARACTERS
        assert split_thoughts(text) == Reply(None, text)
        assert segmentation.MAX_CHARACTERS < MAX_CHARACTERS > MAX_REPLY_CHARACTERS
