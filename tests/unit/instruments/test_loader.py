import pytest

from app.domain.instruments.dimension import Scale
from app.domain.instruments.persona import Persona, Trait
from app.domain.instruments.task import ItemSource
from app.instruments.loader import load_atomic


class TestThePaper:
    def test_has_five_dimensions_in_the_paper_s_order_on_its_scale(self) -> None:
        dimensions = load_atomic("v1").dimensions
        assert [(d.id, d.name) for d in dimensions.values()] == [
            ("O", "openness"),
            ("C", "conscientiousness"),
            ("E", "extroversion"),
            ("A", "agreeableness"),
            ("N", "neuroticism"),
        ]
        assert {d.scale for d in dimensions.values()} == {Scale(1, 5, ("low", "neutral", "high"), 9)}
        assert [len(d.questions) for d in dimensions.values()] == [10] * 5

    def test_has_fifteen_personas_with_one_trait_each(self) -> None:
        instrument = load_atomic("v1")
        expected = {
            f"{d}-{level}": (Trait(d, level),) for d in "OCEAN" for level in ("high", "neutral", "low")
        }
        assert {persona.id: persona.traits for persona in instrument.personas.values()} == expected
        assert dict(instrument.persona_sets) == {"big-five": tuple(expected)}

    def test_the_stable_person_is_the_high_level_of_neuroticism(self) -> None:
        assert load_atomic("v1").personas["N-high"] == Persona(
            "N-high", "emotionally stable person", (Trait("N", "high"),)
        )

    def test_has_three_tasks_with_the_mean_units_of_table_15(self) -> None:
        tasks = load_atomic("v1").tasks
        columns = {
            "questionnaire": [6.4, 4.6, 5.7, 5.5, 5.7, 8.2, 7.0, 7.8, 8.9, 5.8, 6.6, 5.6],
            "essay": [10.2, 12.3, 15.2, 14.8, 16.0, 14.3, 16.7, 18.1, 13.3, 12.4, 17.2, 15.4],
            "social_media_post": [10.5, 15.7, 17.5, 23.7, 28.5, 14.3, 24.3, 17.6, 15.4, 21.8, 19.9, 23.1],
        }
        assert list(tasks) == list(columns)
        for id_, column in columns.items():
            assert tasks[id_].expected_units == pytest.approx(sum(column) / 12, abs=0.005)
        assert [t.item_source for t in tasks.values()] == [
            ItemSource.QUESTIONS,
            ItemSource.ESSAY_CONTEXT,
            ItemSource.COMMON,
        ]
