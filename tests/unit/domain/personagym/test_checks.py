"""Checks of questions and exemplars, on labelled texts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.domain.personagym.checks import exemplar_fault, question_fault
from app.domain.personagym.prompts import rubric_outline
from app.instruments.personagym_loader import load_personagym

GOLDEN = Path(__file__).parents[3] / "golden"
LABELLED: Any = yaml.safe_load((GOLDEN / "personagym_checks.yaml").read_text(encoding="utf-8"))
QUESTIONS, EXEMPLARS = LABELLED["questions"], LABELLED["exemplars"]
GYM = load_personagym()
OTHERS = {
    1: "I sleep all day long.",
    2: "I walk around the barn.",
    3: "I read a newspaper at noon.",
    4: "I talk with my neighbours.",
}


class TestQuestions:
    @pytest.mark.parametrize("question", [*QUESTIONS["printed"], *QUESTIONS["published"], *QUESTIONS["good"]])
    def test_good_ones_pass(self, question: str) -> None:
        assert question_fault(question) is None

    @pytest.mark.parametrize("question", QUESTIONS["bad"])
    def test_bad_ones_have_a_fault(self, question: str) -> None:
        assert question_fault(question) is not None


class TestExemplars:
    @pytest.mark.parametrize("printed", EXEMPLARS["printed"])
    def test_printed_ones_pass(self, printed: Any) -> None:
        rubric = rubric_outline(GYM.prompts, GYM.tasks[printed["task"]])
        assert exemplar_fault(dict(enumerate(printed["texts"], 1)), rubric, printed["question"]) is None

    @pytest.mark.parametrize("text", EXEMPLARS["good"])
    @pytest.mark.parametrize("task", GYM.tasks)
    def test_good_ones_pass_for_each_rubric(self, text: str, task: str) -> None:
        assert self._fault(text, task) is None

    @pytest.mark.parametrize("text", EXEMPLARS["bad"])
    def test_bad_ones_have_a_fault_that_names_the_score(self, text: str) -> None:
        assert (self._fault(text, "expected_action") or "").startswith("the exemplar for score 5 ")

    @pytest.mark.parametrize("task", GYM.tasks)
    def test_each_guideline_restates_the_rubric(self, task: str) -> None:
        for guideline in GYM.tasks[task].guidelines:
            assert self._fault(guideline, task) == "the exemplar for score 5 restates the rubric"

    def _fault(self, text: str, task: str) -> str | None:
        rubric = rubric_outline(GYM.prompts, GYM.tasks[task])
        return exemplar_fault(OTHERS | {5: text}, rubric, "What do you do at the market?")
