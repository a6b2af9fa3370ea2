import pytest

from simulator.bank import DIMENSIONS
from simulator.persona import describe_persona, read_persona
from tests.unit.simulator.gym_prompts import SYSTEM_PROMPTS
from tests.unit.simulator.prompts import INSTRUCTIONS

PERSONAS = {
    "high": (
        "open person",
        "conscientious person",
        "extroverted person",
        "agreeable person",
        "emotionally stable person",
    ),
    "neutral": (
        "neither open nor close-minded person",
        "neither conscientious nor careless person",
        "neither extroverted nor introverted person",
        "neither agreeable nor disagreeable person",
        "neither emotionally stable nor neurotic person",
    ),
    "low": (
        "close-minded person",
        "careless person",
        "introverted person",
        "disagreeable person",
        "neurotic person",
    ),
}


class TestReadPersona:
    @pytest.mark.parametrize("instruction", INSTRUCTIONS)
    @pytest.mark.parametrize("level", PERSONAS)
    def test_the_fifteen_personas_are_recognised_in_all_six_instructions(
        self, level: str, instruction: str
    ) -> None:
        for dimension, persona in zip(DIMENSIONS, PERSONAS[level], strict=True):
            assert read_persona(instruction.format(persona=persona)) == {dimension: level}

    def test_several_traits_are_all_read(self) -> None:
        system = "You are an introverted person and a neither open nor close-minded person."
        assert read_persona(system) == {"E": "low", "O": "neutral"}

    def test_adjectives_hint_at_traits(self) -> None:
        assert read_persona("You are a shy but curious librarian, anxious about everything.") == {
            "E": "low",
            "O": "high",
            "N": "low",
        }

    def test_of_two_contrary_hints_the_first_counts(self) -> None:
        assert read_persona("Speak like a kind man who is sometimes rude.") == {"A": "high"}

    def test_the_instructions_own_words_are_no_hints(self) -> None:
        personas = [read_persona(instruction.format(persona="a cowboy")) for instruction in INSTRUCTIONS]
        assert set(personas[0]) == set(DIMENSIONS)
        assert all(persona == personas[0] for persona in personas)

    def test_unknown_personas_differ(self) -> None:
        names = ("a cowboy", "a pirate", "an astronaut", "a baker", "")
        assert len({tuple(read_persona(f"Speak like {name}.").items()) for name in names}) > 3

    def test_hostile_text_is_read_in_linear_time(self) -> None:
        describe_persona("You are " + ". Answer the questions" * 50_000)
        assert set(read_persona("You are a " + "neither open nor " * 100_000)) == {"O"}


class TestDescribePersona:
    @pytest.mark.parametrize("system", [*SYSTEM_PROMPTS, "You are {persona}."])
    @pytest.mark.parametrize(
        "persona", ["A 71-year-old nurse from Bari", "a cowboy. He answers the questions. Slowly"]
    )
    def test_a_description_is_read_as_it_was_written(self, persona: str, system: str) -> None:
        assert describe_persona(system.format(persona=persona)) == persona

    def test_a_system_prompt_of_another_form_is_its_own_description(self) -> None:
        assert describe_persona("Speak like a cowboy.") == "Speak like a cowboy"
