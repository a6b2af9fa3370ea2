from dataclasses import replace

import pytest

from app.domain.errors import InvalidJobError
from app.domain.instruments.persona import Persona, Trait, traits_in_words, traits_of
from app.domain.instruments.prompts import scoring_prompt
from app.domain.jobs.plan import atomic
from app.domain.jobs.request import DimensionIn, ResponseIn
from app.domain.jobs.resolve import resolve
from app.domain.jobs.resolve_responses import MAX_RUN
from app.domain.providers.model import Takes
from tests.job_requests import a_dimension, a_model, a_persona, a_response
from tests.unit.domain.job_samples import (
    CATALOG,
    DUO,
    INSTRUMENT,
    POLITICS,
    draft,
    keeping,
    resolved,
    texts,
    wrong,
)

TEXT = a_response("E-low", "essay", "I stay in.")


class TestNames:
    def test_a_set_stands_for_its_personas_in_their_order(self) -> None:
        assert (
            tuple(p.id for p in resolved(personas=("big-five",)).spec.personas)
            == INSTRUMENT.persona_sets["big-five"]
        )

    def test_a_persona_written_out_keeps_its_traits_in_their_order(self) -> None:
        (persona,) = resolved(personas=(DUO,)).spec.personas
        assert persona == Persona("duo", DUO.description, (Trait("A", "high"), Trait("N", "low")))

    def test_only_the_dimensions_that_are_used_go_into_the_specification(self) -> None:
        spec = resolved(personas=("E-low", DUO)).spec
        assert [dimension.id for dimension in spec.dimensions] == ["E", "A", "N"]
        assert spec.dimension("N").id == "N"
        with pytest.raises(KeyError):
            spec.dimension("O")

    def test_without_a_choice_all_six_instructions_are_used(self) -> None:
        assert resolved(instructions=None).spec.instructions == INSTRUMENT.instructions

    def test_instructions_are_numbers_from_zero_or_texts(self) -> None:
        spec = resolved(instructions=(5, "Be {persona}!"), iterations=5).spec
        assert spec.instructions == (INSTRUMENT.instructions[5], "Be {persona}!")
        assert (spec.runs, [spec.instruction_of(run) for run in (0, 4, 5, 9)]) == (10, [0, 0, 1, 1])

    def test_a_model_is_a_connection_and_a_name_that_may_hold_slashes(self) -> None:
        (model,) = resolved(models=(a_model("sim/org/name", "mine"),)).spec.models
        assert (model.label, model.connection, model.name, model.simulated) == (
            "mine",
            "sim",
            "org/name",
            True,
        )

    def test_judges_run_at_temperature_zero_unless_told_otherwise(self) -> None:
        warm = a_model("acme/k", temperature=0.7, max_tokens=8)
        judges = resolved(judges=(a_model("acme/j"), warm)).spec.judges
        assert [judge.parameters.temperature for judge in judges] == [0.0, 0.7]
        assert judges[1].parameters.max_tokens == 8

    def test_without_judges_the_installations_own_judge(self) -> None:
        catalog = replace(CATALOG, judges=(a_model("acme/j"), a_model("sim/k")))
        judges = resolve(draft(judges=()), catalog).spec.judges
        assert [(judge.label, judge.parameters.temperature) for judge in judges] == [
            ("acme/j", 0.0),
            ("sim/k", 0.0),
        ]

    def test_models_keep_their_providers_temperature(self) -> None:
        assert resolved().spec.models[0].parameters.temperature is None

    def test_a_dimension_of_ones_own_serves_the_tasks_that_it_has_words_for(self) -> None:
        own = a_dimension(
            "p", "politics", "1 to 7, or 0", (1, 7, 0), ("left", "right"), essay_context="A vote."
        )
        persona = a_persona("x", "a citizen", {"p": "right"})
        resolution = resolved(dimensions=(own,), personas=(persona,), tasks=("essay", "social_media_post"))
        assert [cell.items[0].text for cell in atomic(resolution.cells)] == ["A vote.", ""]
        assert resolution.spec.dimensions[0].scale.level_of(5) == "right"

    def test_a_dimension_is_shown_by_its_label_and_words_of_which_no_prompt_has_any(self) -> None:
        plain = a_dimension("f", "casualness", "1) … 9)", essay_context="A vote.")
        worded = plain.model_copy(update={"label": "informality", "level_words": {"low": "stiff"}})
        persona = a_persona("x", "a clerk", {"f": "low"})
        words, prompts = [], []
        for own in (plain, worded):
            found = resolved(dimensions=(own,), personas=(persona,), tasks=("essay",))
            (dimension,), (cell,) = found.spec.dimensions, atomic(found.cells)
            words.append(traits_in_words(cell.persona, found.spec.dimensions))
            prompts.append(scoring_prompt(cell.task, dimension, cell.items[0], "I sang."))
        assert words == [("low in casualness",), ("low in informality (stiff)",)]
        assert prompts[0] == prompts[1]

    def test_words_of_a_level_that_a_dimension_lacks_are_refused(self) -> None:
        own = a_dimension("f", "formality", "1) … 9)").model_copy(update={"level_words": {"a/b": "stiff"}})
        assert wrong(draft(dimensions=(own,))) == {
            "/dimensions/0/level_words/a~1b": "'a/b' is none of the dimension's levels: low, neutral, high"
        }


class TestErrors:
    def test_all_of_them_are_told_at_once(self) -> None:
        errors = wrong(
            draft(personas=("x",), tasks=("y",), models=(a_model("z/1"),), judges=(), instructions=(6,))
        )
        assert list(errors) == ["/personas/0", "/tasks/0", "/models/0", "/judges", "/instructions/0"]

    def test_each_names_what_was_given_and_what_there_is(self) -> None:
        errors = wrong(draft(personas=(a_persona("x", "y", {"E": "mid", "Z": "low"}),), tasks=("poem",)))
        assert errors == {
            "/personas/0/traits/E": "dimension 'E' has no level 'mid'; its levels: low (introverted),"
            " neutral (neither introverted nor extraverted), high (extraverted)",
            "/personas/0/traits/Z": "unknown dimension 'Z'; known: O (openness), C (conscientiousness),"
            " E (extraversion), A (agreeableness), N (emotional stability)",
            "/tasks/0": "unknown task 'poem'; known: questionnaire, essay, social_media_post, expected_action,"
            " action_justification, linguistic_habits, persona_consistency, toxicity_control",
        }

    def test_a_misspelt_name_is_told_with_the_nearest_known_one(self) -> None:
        errors = wrong(draft(personas=("e-hihg", "big_five"), tasks=("questionaire",)))
        assert errors == {
            "/personas/0": "unknown persona or persona set 'e-hihg'; did you mean 'E-high'?",
            "/personas/1": "unknown persona or persona set 'big_five'; did you mean 'big-five'?",
            "/tasks/0": "unknown task 'questionaire'; did you mean 'questionnaire'?",
        }

    def test_a_misspelt_trait_is_told_with_the_nearest_dimension_and_what_it_is_called(self) -> None:
        traits = {"e": "high", "neuroticsm": "high", "Openess": "low", "A": "hihg"}
        errors = wrong(draft(personas=(a_persona("x", "y", traits),)))
        place = "/personas/0/traits"
        assert errors == {
            f"{place}/e": "unknown dimension 'e'; did you mean 'E' (extraversion)?",
            f"{place}/neuroticsm": "unknown dimension 'neuroticsm'; did you mean 'N' (emotional stability)?",
            f"{place}/Openess": "unknown dimension 'Openess'; did you mean 'O' (openness)?",
            f"{place}/A": "dimension 'A' has no level 'hihg'; did you mean 'high'?",
        }

    def test_a_thousand_misspelt_names_are_not_all_compared(self) -> None:
        errors = wrong(draft(personas=tuple(f"big-fiv{n}" for n in range(1000))))
        suggested = [pointer for pointer, message in errors.items() if "did you mean" in message]
        assert (len(errors), suggested) == (1000, [f"/personas/{n}" for n in range(20)])

    def test_a_persona_that_is_there_twice_is_named_where_it_comes_again(self) -> None:
        with pytest.raises(InvalidJobError) as caught:
            resolve(draft(personas=("E-low", "A-low", "big-five")), CATALOG)
        found = [(error.pointer, error.message.partition(";")[0]) for error in caught.value.errors]
        assert found == [
            ("/personas/2", "persona 'E-low' is given more than once, first by /personas/0"),
            ("/personas/2", "persona 'A-low' is given more than once, first by /personas/1"),
        ]

    def test_a_combination_that_cannot_be_measured_says_which_and_why(self) -> None:
        persona = a_persona("x", "a citizen", {"p": "left"})
        errors = wrong(
            draft(dimensions=(POLITICS,), personas=("E-low", persona), tasks=("social_media_post", "essay"))
        )
        assert errors == {
            "/personas/1": "task 'essay' can't measure persona 'x' on dimension 'p': the dimension has no essay_context"
        }

    def test_pointers_escape_slashes_and_tildes(self) -> None:
        assert list(wrong(draft(personas=(a_persona("x", "y", {"a/~": "low"}),)))) == [
            "/personas/0/traits/a~1~0"
        ]

    @pytest.mark.parametrize(
        ("dimension", "pointer"),
        [
            (a_dimension("E", "n", "o"), "/dimensions/0/id"),
            (a_dimension("p", "n", "o", (5, 5, 9)), "/dimensions/0/scale"),
            (a_dimension("p", "n", "o", (0, 9, 9)), "/dimensions/0/scale"),
            (a_dimension("p", "n", "o", levels=("a", "a")), "/dimensions/0/levels"),
        ],
    )
    def test_dimensions(self, dimension: DimensionIn, pointer: str) -> None:
        assert pointer in wrong(draft(dimensions=(dimension,)))

    def test_runs_are_bounded_by_how_they_are_numbered(self) -> None:
        instructions = tuple(f"{{persona}} {n}" for n in range(33))
        assert resolved(instructions=instructions, iterations=992).spec.runs == 32_736
        assert list(wrong(draft(instructions=instructions, iterations=993))) == ["/iterations"]

    def test_items_are_bounded_by_what_can_be_laid_out(self) -> None:
        # 1,005 personas × 200 questions
        own = a_dimension("p", "n", "o", levels=("a", "b"), questions=("?",) * 200)
        catalog = keeping(Persona(f"x{n}", "y", traits_of({"p": "a"})) for n in range(1005))
        asked = draft(dimensions=(own,), personas=("pset_1",), tasks=("questionnaire",))
        assert wrong(asked, catalog) == {
            "/personas": "201,000 questions and contexts per run; at most 200,000"
        }

    def test_no_models_is_told_where_models_belong(self) -> None:
        assert list(wrong(draft(models=()))) == ["/models"]


class TestExistingTexts:
    def test_runs_are_numbered_as_they_come_within_each_cell_and_item(self) -> None:
        e1, e2 = (a_response("E-low", "questionnaire", "x", item=f"E-{n}") for n in (1, 2))
        placed = resolve(texts(e1, e2, e1, TEXT, e1, tasks=("questionnaire", "essay")), CATALOG).provided
        assert [(p.cell, p.item, p.run) for p in placed] == [
            (0, 0, 0),
            (0, 1, 0),
            (0, 0, 1),
            (1, 0, 0),
            (0, 0, 2),
        ]

    def test_numbering_goes_on_after_the_greatest_run_that_was_given(self) -> None:
        given = a_response("E-low", "essay", "x", run=7)
        assert [p.run for p in resolve(texts(TEXT, given, TEXT), CATALOG).provided] == [0, 7, 8]

    def test_each_author_is_a_model_that_is_never_called(self) -> None:
        authors = [a_response("E-low", "essay", "x", model=name) for name in ("b", "a", "b")]
        resolution = resolve(texts(*authors), CATALOG)
        assert [(m.label, m.connection, m.simulated) for m in resolution.spec.models] == [
            ("b", "", False),
            ("a", "", False),
        ]
        assert [p.cell for p in resolution.provided] == [0, 1, 0]

    def test_a_text_keeps_its_instructions_number(self) -> None:
        given = a_response("E-low", "essay", "x", instruction=3)
        assert [p.instruction for p in resolve(texts(given, TEXT), CATALOG).provided] == [3, None]

    @pytest.mark.parametrize(
        ("response", "pointer"),
        [
            (a_response("A-low", "essay", "x"), "/responses/1/persona"),
            (a_response("E-low", "poem", "x"), "/responses/1/task"),
            (a_response("E-low", "essay", "x", item="A"), "/responses/1/item"),
            (a_response("E-low", "essay", "x", run=0), "/responses/1/run"),
        ],
    )
    def test_errors(self, response: ResponseIn, pointer: str) -> None:
        assert list(wrong(texts(TEXT, response))) == [pointer]

    def test_runs_that_are_numbered_here_are_bounded_as_well(self) -> None:
        last = a_response("E-low", "essay", "x", run=MAX_RUN - 1)
        assert list(wrong(texts(last, TEXT))) == ["/responses/1/run"]

    def test_an_item_must_be_named_where_there_are_several(self) -> None:
        errors = wrong(texts(a_response("E-low", "questionnaire", "x"), tasks=("questionnaire",)))
        assert "E-1, E-2" in errors["/responses/0/item"]

    def test_one_run_has_one_instruction(self) -> None:
        asked = [
            a_response("E-low", "questionnaire", "x", item=f"E-{n}", run=4, instruction=n) for n in (1, 2)
        ]
        assert list(wrong(texts(*asked, tasks=("questionnaire",)))) == ["/responses/1/instruction"]

    def test_authors_are_as_few_as_models(self) -> None:
        authors = [a_response("E-low", "essay", "x", model=str(n)) for n in range(51)]
        assert list(wrong(texts(*authors))) == ["/responses/50/model"]
        assert len(resolve(texts(*authors[:50]), CATALOG).cells) == 50

    def test_models_and_instructions_have_no_place_beside_them(self) -> None:
        both = texts(TEXT, models=(a_model("acme/m"),), instructions=(1,))
        assert list(wrong(both)) == ["/models", "/instructions"]

    def test_none_at_all_is_an_error(self) -> None:
        assert list(wrong(texts())) == ["/responses"]


def test_a_base_model_has_no_system_message_to_move() -> None:
    of_base = replace(CATALOG, takes=lambda *_: Takes(table="t/1", format="completions"))
    with pytest.raises(InvalidJobError) as caught:
        resolve(draft(models=(a_model("acme/m", system="in_user_turn"),)), of_base)
    assert [(error.pointer, error.message) for error in caught.value.errors] == [
        ("/models/0", "the connection's wire format has no system message; leave out `system`")
    ]
