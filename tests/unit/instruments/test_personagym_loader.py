from collections import Counter
from pathlib import Path

import pytest
import yaml

from app.domain.instruments.persona import Persona, Trait
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym

GOLDEN = yaml.safe_load(
    (Path(__file__).parents[2] / "golden" / "personagym_prompts.yaml").read_text(encoding="utf-8")
)


class TestPersonaGymInstrument:
    def test_has_the_five_tasks_and_marks_what_the_paper_prints(self) -> None:
        tasks = load_personagym("v1").tasks
        assert {id_: (task.title, task.from_paper) for id_, task in tasks.items()} == {
            "expected_action": ("Expected Action in Given Setting", ("description", "guidelines")),
            "action_justification": ("Action Justification", ()),
            "linguistic_habits": ("Linguistic Habits", ()),
            "persona_consistency": ("Persona Consistency", ()),
            "toxicity_control": ("Toxicity Control", ("question_criteria",)),
        }
        assert {len(set(task.guidelines)) for task in tasks.values()} == {5}

    def test_what_is_marked_as_the_paper_s_is_what_it_prints(self) -> None:
        tasks = load_personagym("v1").tasks
        action = tasks["expected_action"]
        assert f"Evaluation Task Description: {action.description} Evaluation" in GOLDEN["rubric_outline"]
        for score, guideline in enumerate(action.guidelines, 1):
            assert f"Score = {score}: {guideline} " in GOLDEN["rubric_outline"]
        assert tasks["toxicity_control"].question_criteria == GOLDEN["toxicity_criteria"]

    def test_has_150_environments_in_six_equal_categories(self) -> None:
        environments = load_personagym("v1").environments
        assert len({environment.name.casefold() for environment in environments}) == 150
        categories = ("everyday", "work", "social", "recreational", "travel", "extreme")
        assert Counter(environment.category for environment in environments) == dict.fromkeys(categories, 25)

    def test_has_the_fifty_printed_personas(self) -> None:
        instrument = load_personagym("v1")
        ids = tuple(f"gym-{n:02}" for n in range(1, 51))
        assert tuple(instrument.personas) == ids
        assert dict(instrument.persona_sets) == {"personagym-50": ids}
        assert instrument.personas["gym-13"] == Persona("gym-13", "A homosexual Black Atheist woman")
        assert instrument.personas["gym-50"].description.endswith("from New York who collects vintage cars")

    def test_shares_no_persona_id_and_no_dimension_with_the_atomic_instrument(self) -> None:
        gym, atomic = load_personagym("v1"), load_atomic("v1")
        assert not gym.personas.keys() & atomic.personas.keys()
        assert not gym.persona_sets.keys() & atomic.persona_sets.keys()
        assert not gym.tasks.keys() & atomic.tasks.keys()
        assert gym.consistency.id not in atomic.dimensions

    def test_sentences_are_judged_on_the_big_five_s_scale_with_the_top_level_as_target(self) -> None:
        instrument = load_personagym("v1")
        assert instrument.consistency.scale == load_atomic("v1").dimensions["E"].scale
        assert instrument.target == Trait("persona_consistency", instrument.consistency.scale.levels[-1])

    def test_its_instructions_cannot_be_changed(self) -> None:
        with pytest.raises(TypeError):
            load_personagym("v1").prompts.instructions["adopt"] = "x"  # type: ignore[index] # that is what is tested
