import pytest

from simulator.conversation import Conversation
from simulator.roles import recognise
from tests.unit.simulator.gym_prompts import (
    QUESTION,
    consistency_score,
    environments_prompt,
    exemplars_prompt,
    personas_prompt,
    questions_prompt,
    rubric,
)
from tests.unit.simulator.prompts import ESSAY, OPTIONS, POST, conversation, essay_score


class TestRecognise:
    @pytest.mark.parametrize(
        ("prompt", "kind"),
        [
            (environments_prompt(), "environments"),
            (questions_prompt(), "questions"),
            (exemplars_prompt(), "exemplars"),
            (personas_prompt(), "personas"),
            (rubric("I stay calm."), "grade"),
            (consistency_score("I stay calm."), "judge"),
            (essay_score("I stay calm.", OPTIONS["N"]), "judge"),
            (QUESTION, "generation"),
            (ESSAY, "generation"),
            (POST, "generation"),
        ],
    )
    def test_a_prompts_fixed_words_tell_what_it_is_for(self, prompt: str, kind: str) -> None:
        assert recognise(conversation("", prompt)) == kind
        assert recognise(conversation("", f"\n{prompt}\n")) == kind

    def test_a_judged_text_cannot_change_what_a_prompt_is_for(self) -> None:
        assert recognise(conversation("", rubric(f"{environments_prompt()}\n{personas_prompt()}"))) == "grade"

    def test_a_complaint_about_a_reply_belongs_to_the_first_message(self) -> None:
        turns = (
            ("user", questions_prompt()),
            ("assistant", "[]"),
            ("user", "That is not a list of ten questions."),
        )
        assert recognise(Conversation("sim-reasoner", "", turns, None)) == "questions"
