"""Which tokens a provider has read before, and which of our prompts it can have."""

from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import items_for
from app.domain.judging.grouping import grouped_scoring_prompt
from app.domain.personagym.prompts import rubric_prompt
from app.instruments.grouped_loader import load_grouped
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from simulator.conversation import CHARACTERS_PER_TOKEN
from simulator.prompt_cache import FEWEST_TOKENS, STEP_TOKENS, PromptCache
from tests.unit.simulator.prompts import conversation

SHORTEST = "x" * (FEWEST_TOKENS * CHARACTERS_PER_TOKEN)


def read(cache: PromptCache, prompt: str, system: str = "", model: str = "sim-judge") -> int:
    return cache.read(conversation(system, prompt, model=model))


def graded(response: str, exemplar_tokens: int) -> str:
    """A rubric filled in, with exemplars of so many tokens each."""
    gym = load_personagym("v1")
    exemplar = "An answer. " * (exemplar_tokens * CHARACTERS_PER_TOKEN // 11)
    return rubric_prompt(
        gym.prompts,
        gym.tasks["expected_action"],
        persona="a cowboy",
        question="A storm comes up on the range. What do you do?",
        exemplars=dict.fromkeys(range(1, 6), exemplar),
        response=response,
    )


class TestPromptCache:
    def test_a_beginning_in_common_is_read_in_whole_steps(self) -> None:
        cache = PromptCache()
        assert read(cache, SHORTEST + "a" * 3 * STEP_TOKENS * CHARACTERS_PER_TOKEN) == 0
        assert read(cache, SHORTEST + "a" * STEP_TOKENS * CHARACTERS_PER_TOKEN + "b" * 9_000) == 1_024 + 128

    def test_a_short_prompt_is_not_kept(self) -> None:
        cache = PromptCache()
        assert [read(cache, SHORTEST[:-2]) for _ in range(3)] == [0, 0, 0]

    def test_another_model_or_another_beginning_reads_anew(self) -> None:
        cache = PromptCache()
        assert read(cache, SHORTEST) == 0
        assert read(cache, SHORTEST, model="sim-faithful") == 0
        assert read(cache, SHORTEST, system="Be somebody.") == 0
        assert read(cache, SHORTEST) == FEWEST_TOKENS


class TestOurPrompts:
    def test_two_models_answers_to_a_question_share_a_rubric_only_with_long_exemplars(self) -> None:
        for exemplar_tokens, found in ((30, 0), (70, 0), (120, 1_024)):
            cache = PromptCache()
            assert read(cache, graded("I ride home. " * 60, exemplar_tokens)) == 0
            assert read(cache, graded("I stay. " * 90, exemplar_tokens)) == found

    def test_sentences_of_a_question_never_fill_what_is_kept(self) -> None:
        instrument, cache = load_atomic("v1"), PromptCache()
        task, dimension = instrument.tasks["questionnaire"], instrument.dimensions["E"]
        item = items_for(task, (dimension,))[0]
        for text in ("I dance until four. " * 5, "I stay at home. " * 6):
            units = [Unit(n, 0, len(text), text) for n in range(8)]
            prompt = grouped_scoring_prompt(load_grouped(), task, dimension, item, units)
            assert read(cache, prompt) == 0
