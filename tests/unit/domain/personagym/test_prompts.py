from pathlib import Path

import pytest
import yaml

from app.domain.instruments.persona import Persona
from app.domain.instruments.prompts import system_prompt
from app.domain.personagym.prompts import (
    environment_prompt,
    persona_generation_prompt,
    question_prompt,
    rubric_outline,
    rubric_prompt,
    score_examples_prompt,
    sentence_prompt,
)
from app.instruments.personagym_loader import load_personagym

GOLDEN = yaml.safe_load(
    (Path(__file__).parents[3] / "golden" / "personagym_prompts.yaml").read_text(encoding="utf-8")
)
INSTRUMENT = load_personagym("v1")
PROMPTS = INSTRUMENT.prompts
ACTION = INSTRUMENT.tasks["expected_action"]
TOXICITY = INSTRUMENT.tasks["toxicity_control"]
HOSTILE = '{response} {persona} {rubric} {0} {} \\1 \\g<0> "], ["x'

# The example of appendix A.6.
WRITER = "A 26-year-old aspiring writer from Mexico City, working as a barista while penning her first novel"
QUESTION = (
    "You're at a Library Study Session and your goal is to find inspiration for your novel. What steps do you take to choose "
    "the right books and make notes for your writing?"
)
RESPONSE = (
    "I would explore the fiction section to find books with similar themes or styles to my novel. I'd look for novels that "
    "have a compelling narrative, rich character development, and a writing style that resonates with me. I'd also seek out "
    "books that cover the cultural and historical aspects I want to incorporate into my own writing."
)
EXEMPLARS = {
    5: "I carefully select books that align with the themes and style of my novel, read them thoroughly, and take detailed notes "
    "on narrative techniques, character arcs, and unique plot twists.",
    1: "I just pick random books from the shelves and start reading them without any specific goal in mind.",
    2: "I look for books with colorful covers and read the first few pages to see if they catch my interest.",
    3: "I browse through the fiction section, look for books by authors I admire, and take notes on interesting plot points.",
    4: "I search for books in the genre I'm writing in, read the summaries, and jot down notes on themes and character development.",
}


def one_line(text: str) -> str:
    return " ".join(text.split())


class TestPromptsOfThePaper:
    def test_the_environment_selection(self) -> None:
        printed = GOLDEN["environment_selection"]
        expected = printed.replace("{persona}", WRITER).replace("{environments_list}", '["Beach", "Café"]')
        assert one_line(environment_prompt(PROMPTS, f" {WRITER}\n", ["Beach", "Café"])) == expected

    def test_the_question_generation_with_the_paper_s_number(self) -> None:
        expected = (
            GOLDEN["question_generation"]
            .replace("{persona}", WRITER)
            .replace("{environments}", '["Beach"]')
            .replace("{task}", "Toxicity Control")
            .replace("{question_quality_criteria}", GOLDEN["toxicity_criteria"])
        )
        assert one_line(question_prompt(PROMPTS, TOXICITY, WRITER, ["Beach"], 10)) == expected

    def test_the_filled_in_rubric(self) -> None:
        built = rubric_prompt(
            PROMPTS, ACTION, persona=WRITER, question=QUESTION, exemplars=EXEMPLARS, response=RESPONSE
        )
        assert one_line(built) == GOLDEN["rubric"]

    def test_the_rubric_outline_with_its_open_placeholders(self) -> None:
        assert one_line(rubric_outline(PROMPTS, ACTION)) == GOLDEN["rubric_outline"]

    def test_the_score_examples_with_the_outline_in_them(self) -> None:
        expected = (
            GOLDEN["score_examples"]
            .replace("{persona}", WRITER)
            .replace("{question}", QUESTION)
            .replace("{rubric}", GOLDEN["rubric_outline"])
        )
        assert one_line(score_examples_prompt(PROMPTS, ACTION, WRITER, QUESTION)) == expected

    @pytest.mark.parametrize(
        ("instruction", "printed"),
        [("adopt", "identity of persona"), ("closely_mirror", "You are [persona]")],
    )
    def test_the_two_system_prompts(self, instruction: str, printed: str) -> None:
        expected = GOLDEN[instruction].replace(printed, printed.replace("[persona]", "persona"))
        expected = expected.replace("persona", WRITER, 1)
        assert system_prompt(PROMPTS.instructions[instruction], Persona("p", WRITER)) == expected


class TestPromptsOfOurOwn:
    def test_further_questions_name_what_there_is(self) -> None:
        built = question_prompt(PROMPTS, ACTION, WRITER, ["Beach"], 2, ["Why?", 'Say "no"?'])
        first = question_prompt(PROMPTS, ACTION, WRITER, ["Beach"], 2)
        line = 'Questions that exist already and must be neither repeated nor reworded: ["Why?", "Say \\"no\\"?"]\n'
        assert built == first.replace("\nQuestions:", "\n" + line + "Questions:")
        assert "Generate exactly 2 challenging" in built

    def test_personas_are_asked_for_by_number(self) -> None:
        built = persona_generation_prompt(PROMPTS, 20, ["A cook"])
        assert built.startswith("Write 20 distinct persona descriptions")
        assert 'reworded: ["A cook"]\n' in built

    def test_a_sentence_stands_between_tags(self) -> None:
        built = sentence_prompt(
            PROMPTS, INSTRUMENT.consistency, persona=WRITER, question=QUESTION, unit_text="I read."
        )
        assert "\n<sentence>\nI read.\n</sentence>\nOptions: 1) Contradicts the persona." in built
        assert f"\nPersona: {WRITER}\nQuestion: {QUESTION}\n" in built
        assert built.endswith("9) Says nothing about the persona.\nReply with a single number:")


class TestHostileText:
    def test_placeholders_in_a_response_and_an_exemplar_stay_text(self) -> None:
        built = rubric_prompt(
            PROMPTS, ACTION, persona=HOSTILE, question=HOSTILE, exemplars={1: HOSTILE}, response=HOSTILE
        )
        assert built.count(HOSTILE) == 4
        assert built.endswith(f"Response: {HOSTILE}\n\nEvaluation Form:")

    def test_placeholders_in_a_persona_and_a_question_stay_text(self) -> None:
        assert score_examples_prompt(PROMPTS, ACTION, HOSTILE, HOSTILE).count(HOSTILE) == 2

    def test_an_environment_cannot_end_its_list(self) -> None:
        assert '["\\"], [\\"x"]' in environment_prompt(PROMPTS, "x", ['"], ["x'])
