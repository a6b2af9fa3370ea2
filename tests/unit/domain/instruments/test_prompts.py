from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.persona import Persona
from app.domain.instruments.prompts import scoring_prompt, system_prompt, user_prompt
from app.domain.instruments.task import AtomicTask, Item, ItemSource, items_for
from app.instruments.loader import load_atomic

GOLDEN = yaml.safe_load((Path(__file__).parents[3] / "golden" / "prompts.yaml").read_text(encoding="utf-8"))
UNIT = "I would pack my bag at once."

# Table 12 of the atomic paper, typed by hand.
WORDS = {
    "O-high": "open person",
    "O-neutral": "neither open nor close-minded person",
    "O-low": "close-minded person",
    "C-high": "conscientious person",
    "C-neutral": "neither conscientious nor careless person",
    "C-low": "careless person",
    "E-high": "extroverted person",
    "E-neutral": "neither extroverted nor introverted person",
    "E-low": "introverted person",
    "A-high": "agreeable person",
    "A-neutral": "neither agreeable nor disagreeable person",
    "A-low": "disagreeable person",
    "N-high": "emotionally stable person",
    "N-neutral": "neither emotionally stable nor neurotic person",
    "N-low": "neurotic person",
}


def printed_instructions(words: str) -> list[str]:
    return [
        "You are a " + words + ".",
        "You are "
        + words
        + ". Your responses should closely mirror the knowledge and abilities of this persona.",
        "Adopt the identity of "
        + words
        + ". Answer the questions while staying in strict accordance with the "
        "nature of this identity.",
        "Take the role of "
        + words
        + ". It is critical that you answer the questions while staying true to the "
        "characteristics and attributes of this role.",
        "Speak exactly like "
        + words
        + ". Your answer should copy the style of "
        + words
        + ", both the writing "
        "style and words you use.",
        "Speak like " + words + ".",
    ]


def first_item(task_id: str, dimension_id: str) -> Item:
    instrument = load_atomic("v1")
    return items_for(instrument.tasks[task_id], (instrument.dimensions[dimension_id],))[0]


class TestPromptsOfThePaper:
    @pytest.mark.parametrize("persona_id", WORDS)
    def test_every_persona_gets_the_six_printed_instructions(self, persona_id: str) -> None:
        instrument = load_atomic("v1")
        built = [
            system_prompt(instruction, instrument.personas[persona_id])
            for instruction in instrument.instructions
        ]
        assert built == printed_instructions(WORDS[persona_id])

    @pytest.mark.parametrize("dimension", "OCEAN")
    @pytest.mark.parametrize("task", ["questionnaire", "essay", "social_media_post"])
    def test_the_user_prompt_is_the_printed_one(self, task: str, dimension: str) -> None:
        built = user_prompt(load_atomic("v1").tasks[task], first_item(task, dimension))
        assert built.encode() == GOLDEN["user"][task][dimension].encode()

    @pytest.mark.parametrize("dimension", "OCEAN")
    @pytest.mark.parametrize("task", ["questionnaire", "essay", "social_media_post"])
    def test_the_scoring_prompt_is_the_printed_one(self, task: str, dimension: str) -> None:
        instrument = load_atomic("v1")
        item = first_item(task, dimension)
        built = scoring_prompt(instrument.tasks[task], instrument.dimensions[dimension], item, UNIT)
        assert built.encode() == GOLDEN["scoring"][task][dimension].encode()

    @pytest.mark.parametrize("dimension", "OCEAN")
    def test_each_of_the_fifty_questions_stands_in_its_prompts(self, dimension: str) -> None:
        instrument = load_atomic("v1")
        task = instrument.tasks["questionnaire"]
        items = items_for(task, (instrument.dimensions[dimension],))
        assert [user_prompt(task, item) for item in items] == [
            "Describe your personality under 100 words.\n" + question + "\nResponse:"
            for question in GOLDEN["questions"][dimension]
        ]
        assert [item.text for item in items] == GOLDEN["questions"][dimension]


class TestArticleBeforeAPersona:
    @pytest.mark.parametrize(
        ("description", "expected"),
        [
            ("a cowboy", "You are a cowboy."),
            ("an astronaut", "You are an astronaut."),
            ("the mayor of Oslo", "You are the mayor of Oslo."),
            ("A 71-year-old retired nurse from Italy", "You are A 71-year-old retired nurse from Italy."),
            ("my neighbour", "You are my neighbour."),
            ("someone who never sleeps", "You are someone who never sleeps."),
            ("one of the Beatles", "You are one of the Beatles."),
        ],
    )
    def test_goes_where_the_description_has_a_determiner_of_its_own(
        self, description: str, expected: str
    ) -> None:
        assert system_prompt("You are a {persona}.", Persona("p", description)) == expected

    @pytest.mark.parametrize(
        ("description", "expected"),
        [
            ("open person", "You are a open person."),
            ("neither open nor close-minded person", "You are a neither open nor close-minded person."),
            ("blunt critic", "You are a blunt critic."),
            ("theatre critic", "You are a theatre critic."),
            ("a-list actor", "You are a a-list actor."),
            ("one-armed pirate", "You are a one-armed pirate."),
            ("A.I. engineer", "You are a A.I. engineer."),
        ],
    )
    def test_stays_where_it_has_none(self, description: str, expected: str) -> None:
        assert system_prompt("You are a {persona}.", Persona("p", description)) == expected

    def test_only_an_article_goes_not_the_end_of_another_word(self) -> None:
        assert (
            system_prompt("Write via {persona}, a {persona}.", Persona("p", "a cat"))
            == "Write via a cat, a cat."
        )

    @pytest.mark.parametrize("instruction", ["You are {persona}. Stay so.", "Speak like {persona}."])
    def test_instructions_without_an_article_keep_the_description_as_it_is(self, instruction: str) -> None:
        assert system_prompt(instruction, Persona("p", "a cowboy")) == instruction.replace(
            "{persona}", "a cowboy"
        )

    @pytest.mark.parametrize("description", [" a cowboy. ", "a cowboy.\n", "a cowboy.", "\ta cowboy"])
    def test_space_around_a_description_and_its_final_period_go(self, description: str) -> None:
        assert system_prompt("You are a {persona}.", Persona("p", description)) == "You are a cowboy."


class TestHostileText:
    TASK = AtomicTask(
        id="t",
        title="T",
        prompt="Answer {question}!",
        scoring_prompt="{dimension}|{question}|{atomic unit}|{options}",
        item_source=ItemSource.QUESTIONS,
        expected_units=1,
        expected_output_tokens=1,
    )
    DIMENSION = Dimension("X", "boldness", Scale(), "1) … 9)")

    def test_placeholders_in_a_unit_stay_text(self) -> None:
        unit = "{options} {question} {atomic unit} {dimension} {0} {} \\1 \\g<0>"
        built = scoring_prompt(self.TASK, self.DIMENSION, Item(0, "X-1", "{options}?", ("X",)), unit)
        assert built == "boldness|{options}?|" + unit + "|1) … 9)"

    def test_placeholders_in_a_persona_stay_text(self) -> None:
        built = system_prompt("Be {persona}, {persona}.", Persona("p", "{persona} and {options}"))
        assert built == "Be {persona} and {options}, {persona} and {options}."

    def test_placeholders_in_a_question_stay_text(self) -> None:
        assert (
            user_prompt(self.TASK, Item(0, "X-1", "{context}{question}", ("X",)))
            == "Answer {context}{question}!"
        )

    @pytest.mark.parametrize("template", ["{unknown}", "{options}", "{", "{}"])
    def test_braces_that_a_template_does_not_define_stay(self, template: str) -> None:
        assert system_prompt(template + "{persona}", Persona("p", "x")) == template + "x"


def test_the_golden_questions_are_fifty() -> None:
    questions: Mapping[str, list[str]] = GOLDEN["questions"]
    assert {dimension: len(texts) for dimension, texts in questions.items()} == dict.fromkeys("OCEAN", 10)
