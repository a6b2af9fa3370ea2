"""The body that a form makes, and where what is wrong with it is told."""

import json
from typing import Any, ClassVar
from urllib.parse import urlencode

import pytest

from app.api.console.job_form import SPARE_ROWS, JobForm, Typed, form_of, form_of_source, traits
from app.domain.errors import FieldError

INSTRUCTIONS = 6
ALL = [("instruction", str(n)) for n in range(INSTRUCTIONS)]


def typed(*fields: tuple[str, str]) -> Typed:
    return Typed.parse(urlencode(fields).encode())


def form(*fields: tuple[str, str]) -> JobForm:
    return JobForm(typed(*ALL, *fields), INSTRUCTIONS)


class TestBody:
    def test_has_only_what_was_filled_in(self) -> None:
        assert form().body == {}
        assert form(("name", "  "), ("priority", "normal"), ("reuse_judging", "off")).body == {}

    def test_asks_what_finds_a_difference_apart_from_the_job(self) -> None:
        found = form(
            ("detect_difference", "0.1"),
            ("detect_population", "personas"),
            ("detect_models", "3"),
        )
        assert found.body == {}
        assert found.detect == {"difference": 0.1, "population": "personas", "models": 3}
        assert form(("detect_population", "personas"), ("detect_models", "3")).detect is None

    def test_has_everything_that_was(self) -> None:
        found = form(
            ("name", "all of it"),
            ("persona", "big-five"),
            ("persona", "E-low"),
            ("persona_id_1", "blunt"),
            ("persona_description_1", "a blunt critic"),
            ("persona_traits_1", "A low, N=high"),
            ("task", "essay"),
            ("model_model_0", "acme/one"),
            ("model_temperature_0", "0.7"),
            ("model_model_3", "acme/two"),
            ("judge_model_0", "acme/judge"),
            ("reasoner", "acme/reasoner"),
            ("rubrics", "rset_1"),
            ("iterations", "2"),
            ("seed", "7"),
            ("budget_usd", "2.5"),
            ("budget_calls", "100"),
            ("priority", "high"),
            ("execution", "batch"),
            ("sentences_per_call", "8"),
            ("reuse_judging", "in_job"),
        )
        assert found.body == {
            "name": "all of it",
            "personas": [
                "big-five",
                "E-low",
                {"id": "blunt", "description": "a blunt critic", "traits": {"A": "low", "N": "high"}},
            ],
            "tasks": ["essay"],
            "models": [{"model": "acme/one", "temperature": 0.7}, "acme/two"],
            "judges": ["acme/judge"],
            "reasoner": "acme/reasoner",
            "rubrics": "rset_1",
            "iterations": 2,
            "seed": 7,
            "budget": {"usd": 2.5, "calls": 100},
            "priority": "high",
            "execution": "batch",
            "judging": {"sentences_per_call": 8},
            "reuse": {"judging": "in_job"},
        }

    def test_takes_traits_that_were_chosen_one_by_one_and_makes_up_ids(self) -> None:
        found = form(
            *(
                ("persona_description_0", "A blunt critic!"),
                ("persona_traits_0", ""),
                ("persona_traits_0", "A low"),
            ),
            *(
                ("persona_traits_0", "N high"),
                ("persona_description_1", "a blunt critic"),
                ("persona_id_2", "own"),
            ),
            ("persona_description_2", "私"),
            ("persona_description_3", "私"),
        )
        assert found.body["personas"] == [
            {"id": "a-blunt-critic", "description": "A blunt critic!", "traits": {"A": "low", "N": "high"}},
            {"id": "a-blunt-critic-2", "description": "a blunt critic"},
            {"id": "own", "description": "私"},
            {"id": "persona", "description": "私"},
        ]

    def test_takes_personas_that_were_pasted_by_line_or_as_csv(self) -> None:
        lines = form(("persona", "E-low"), ("persona_list", "a shy poet; E low\r\n\r\na nurse\r\na nurse"))
        assert lines.body["personas"] == [
            "E-low",
            {"id": "a-shy-poet", "description": "a shy poet", "traits": {"E": "low"}},
            {"id": "a-nurse", "description": "a nurse"},
            {"id": "a-nurse-2", "description": "a nurse"},
        ]
        csv = form(("persona_list", "id,description,traits\npoet,a shy poet,E=low; A=high"))
        assert csv.body["personas"] == [
            {"id": "poet", "description": "a shy poet", "traits": {"E": "low", "A": "high"}}
        ]
        wrong = form(("persona_list", "description,traits\n,E=low"))
        assert list(wrong.errors(wrong.wrong)) == ["persona_list"]

    def test_takes_no_more_pasted_personas_than_are_refused(self) -> None:
        assert len(form(("persona_list", "a nurse\n" * 5000)).body["personas"]) == 1001

    def test_has_a_dimension_and_texts_of_ones_own(self) -> None:
        found = form(
            ("dimension_id", "politics"),
            ("dimension_name", "conservatism"),
            ("dimension_questions", "Why?\r\nHow?\r\n"),
            ("texts", 'persona,task,text,run\r\nE-low,essay,"I stay,\r\nat home.",2\r\nE-low,essay,I go.,'),
        )
        assert found.body == {
            "dimensions": [{"id": "politics", "name": "conservatism", "questions": ["Why?", "How?"]}],
            "responses": [
                {"persona": "E-low", "task": "essay", "text": "I stay,\nat home.", "run": 2},
                {"persona": "E-low", "task": "essay", "text": "I go."},
            ],
        }
        assert list(
            found.errors([FieldError("/dimensions/0/options", "x"), FieldError("/responses/1", "x")])
        ) == [
            "dimension_options",
            "texts",
        ]

    def test_takes_a_size_also_into_json(self) -> None:
        typed = form(("json", '{"seed": 1, "iterations": 9}')).typed.sized(2, 3)
        assert JobForm(typed, 5).body == {"seed": 1, "iterations": 3, "instructions": [0, 1]}
        assert JobForm(form(("json", "{")).typed.sized(2, 3), 5).wrong
        assert form(("seed", "1")).typed.sized(2, 3).text("iterations") == "3"

    def test_passes_on_a_row_of_texts_that_is_longer_than_the_header_to_be_refused(self) -> None:
        found = form(("texts", "persona,task,text\nE-low,essay,I stay, at home"))
        assert found.body["responses"] == [
            {
                "persona": "E-low",
                "task": "essay",
                "text": "I stay",
                "more columns than the header": [" at home"],
            }
        ]

    def test_finds_an_id_however_many_are_taken(self) -> None:
        taken = [("persona", f"a-{n}") for n in range(2, 1900)]
        personas = form(*taken, ("persona_list", "a\n" * 400)).body["personas"]
        assert personas[-1]["id"] == "a-2298"

    def test_is_the_json_that_was_pasted_and_nothing_else(self) -> None:
        pasted = form(("name", "not this"), ("task", "essay"), ("json", '{"personas": ["E-low"], "seed": 1}'))
        assert (pasted.body, pasted.wrong) == ({"personas": ["E-low"], "seed": 1}, [])
        assert list(pasted.errors([FieldError("/seed", "is wrong")])) == ["json"]

    @pytest.mark.parametrize(
        "text",
        ["{", "[1]", "7", '{"a": NaN}', '{"a": 1, "a": 2}', '{"seed": 1e999}', "[" * 5000, '"\\ud800"'],
    )
    def test_json_that_is_no_job_is_told_at_its_field(self, text: str) -> None:
        found = form(("json", text))
        assert found.body == {}
        assert list(found.errors(found.wrong)) == ["json"]

    @pytest.mark.parametrize(("ticked", "expected"), [([4, 0], [0, 4]), ([], [])])
    def test_names_the_instructions_unless_all_are_wanted(
        self, ticked: list[int], expected: list[int]
    ) -> None:
        fields = [("instruction", str(n)) for n in ticked]
        assert JobForm(typed(*fields), INSTRUCTIONS).body["instructions"] == expected

    def test_keeps_what_is_no_number_for_the_check_that_refuses_it(self) -> None:
        found = form(("iterations", "many"), ("budget_usd", "1e"), ("sentences_per_call", "½"))
        assert found.body == {
            "iterations": "many",
            "budget": {"usd": "1e"},
            "judging": {"sentences_per_call": "½"},
        }

    def test_has_the_control_arm_where_it_is_ticked(self) -> None:
        assert form(("control", "without_persona")).body == {"control": True}
        opposite = form(("control", "opposite_persona"))
        assert opposite.body == {"control": {"opposite_persona": True}}
        for pointer in ("/control", "/control/without_persona"):
            assert opposite.errors([FieldError(pointer, "no")]).keys() == {"control"}

    def test_has_the_share_of_an_order_check(self) -> None:
        assert form(("order_check", "0.05")).body == {"judging": {"order_check": {"share": 0.05}}}
        both = form(("order_check", "some"), ("sentences_per_call", "4")).body
        assert both == {"judging": {"sentences_per_call": 4, "order_check": {"share": "some"}}}

    def test_has_the_form_of_replies(self) -> None:
        assert form(("reply_form", "choice")).body == {"judging": {"reply": "choice"}}
        assert form(("reply_form", "text")).body == {}

    def test_can_leave_unreadable_replies_unparsed(self) -> None:
        assert form(("repair", "off")).body == {"judging": {"repair": False}}
        assert form(("repair", "")).body == {}

    @pytest.mark.parametrize("refusals", ["judge", "judge_all"])
    def test_can_ask_the_first_judge_about_refusals(self, refusals: str) -> None:
        assert form(("refusals", refusals)).body == {"judging": {"refusals": refusals}}
        assert form(("refusals", "")).body == {}
        assert "refusals" in form().errors([FieldError("/judging/refusals", "wrong")])

    def test_can_leave_sentences_out(self) -> None:
        both = form(("leave_out", "cut_off"), ("leave_out", "repeated_sentences"))
        assert both.body == {"judging": {"leave_out": ["cut_off", "repeated_sentences"]}}

    def test_has_a_judges_profile(self) -> None:
        judge = (("judge_model_0", "acme/j"), ("judge_profile_0", "selene"))
        assert form(*judge).body == {"judges": [{"model": "acme/j", "profile": "selene"}]}
        assert "judge_profile_0" in form(*judge).errors([FieldError("/judges/0/profile", "wrong")])

    @pytest.mark.parametrize("pointer", ["/judging/order_check", "/judging/order_check/share"])
    def test_what_is_wrong_with_an_order_check_is_told_at_its_field(self, pointer: str) -> None:
        assert "order_check" in form(("order_check", "2")).errors([FieldError(pointer, "wrong")])

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("E high", {"E": "high"}),
            (" E : high ,A=very low", {"E": "high", "A": "very low"}),
            ("E", {"E": ""}),
            (" , ", {}),
        ],
    )
    def test_traits_are_levels_by_dimension(self, text: str, expected: dict[str, str]) -> None:
        assert traits(text) == expected


class TestErrors:
    @pytest.mark.parametrize(
        ("pointer", "field"),
        [
            ("/iterations", "iterations"),
            ("/personas", "persona"),
            ("/personas/0", "persona"),
            ("/personas/1", "persona_id_2"),
            ("/personas/1/id", "persona_id_2"),
            ("/personas/1/traits/E", "persona_traits_2"),
            ("/models/1", "model_model_4"),
            ("/models/0/temperature", "model_temperature_1"),
            ("/judges", "judge_model_0"),
            ("/budget/usd", "budget_usd"),
            ("/budget", "budget_usd"),
            ("/instructions/0", "instruction"),
            ("/nothing/of/the/form", ""),
            ("", ""),
        ],
    )
    def test_stand_at_the_field_that_the_wrong_part_comes_from(self, pointer: str, field: str) -> None:
        error = FieldError(pointer, "is wrong")
        found = form(
            ("persona", "big-five"),
            ("persona_description_2", "a critic"),
            ("persona_traits_2", "E odd"),
            ("model_model_1", "acme/one"),
            ("model_temperature_1", "9"),
            ("model_model_4", "acme/two"),
        )
        assert found.errors([error]) == {field: [error]}


class TestRows:
    def test_there_are_always_some_to_spare(self) -> None:
        assert typed().rows("model") == SPARE_ROWS
        assert typed(("model_temperature_4", "1")).rows("model") == 5 + SPARE_ROWS

    @pytest.mark.parametrize("body", [b"\xff", "é".encode(), b"a=%ff", b"a=1&" * 3_000])
    def test_what_is_no_form_is_refused(self, body: bytes) -> None:
        with pytest.raises(ValueError, match=r".+"):
            Typed.parse(body)


class TestFormOfABody:
    SMALL: ClassVar[dict[str, Any]] = {"personas": ["E-low"], "tasks": ["essay"], "models": ["acme/one"]}

    @pytest.mark.parametrize(
        "more",
        [
            {},
            {"name": "again", "seed": 3, "iterations": 2, "instructions": [0, 3], "control": True},
            {
                "personas": [
                    "E-low",
                    {"id": "x", "description": "a critic", "traits": {"A": "low", "N": "high"}},
                ]
            },
            {"models": ["acme/one", {"model": "acme/two", "temperature": 0.7}], "judges": ["acme/judge"]},
            {"budget": {"usd": 2.5, "calls": 9}, "priority": "low", "execution": "batch"},
            {"control": {"without_persona": True, "opposite_persona": True}},
            {"reuse": {"judging": "in_job"}, "judging": {"sentences_per_call": 4}},
            {"judging": {"order_check": {"share": 0.05}}, "reasoner": "acme/reasoner"},
            {"judging": {"refusals": "judge", "repair": False, "leave_out": ["cut_off"]}},
            {"judging": {"refusals": "judge_all"}},
            {"judging": {"reply": "json_schema"}, "judges": [{"model": "acme/j", "profile": "selene"}]},
            {"dimensions": [{"id": "p", "name": "pride", "options": "1) a 2) b", "questions": ["Q?", "R?"]}]},
        ],
    )
    def test_is_filled_in_so_that_it_makes_the_body(self, more: dict[str, Any]) -> None:
        body = self.SMALL | more
        typed = form_of(body | {"confirm_calls": 9}, ["E-low"], INSTRUCTIONS)
        assert typed.text("json") == ""
        assert JobForm(typed, INSTRUCTIONS).body == body

    @pytest.mark.parametrize(
        "more",
        [
            {"personas": ["pset_of_last_year"]},
            {"tasks": [{"task": "expected_action", "questions": 2}]},
            {"models": [{"model": "acme/two", "top_p": 0.5}]},
            {"reasoner": {"model": "acme/reasoner"}},
            {"thresholds": ["acc>=0.5"]},
            {"control": {"without_persona": False}},
            {"control": False},
            {"instructions": ["You are {persona}."]},
            {"name": "two\nlines "},
            {"judging": {"order_check": None, "sentences_per_call": 4}},
        ],
    )
    def test_is_json_where_the_fields_cannot_say_it(self, more: dict[str, Any]) -> None:
        body = self.SMALL | more
        typed = form_of(body, ["E-low"], INSTRUCTIONS)
        assert typed.text("json") != ""
        assert JobForm(typed, INSTRUCTIONS).body == body


class TestFormOfSource:
    def test_has_named_judges_and_the_rubric_set_in_fields_and_the_rest_as_json(self) -> None:
        texts = {"job": "job_1"}
        body = {"responses": texts, "judges": ["a/b", "a/c"], "rubrics": "rset_1", "protocol": "paper"}
        typed = form_of_source("job_1", body)
        assert (typed.text("judge_model_1"), typed.text("rubrics")) == ("a/c", "rset_1")
        assert json.loads(typed.text("json")) == {"responses": texts, "protocol": "paper"}
        assert JobForm(typed, 6).body == body

    def test_leaves_judges_with_parameters_in_the_json(self) -> None:
        body = {"responses": {"job": "job_1"}, "judges": [{"model": "a/b", "temperature": 0}, "a/c"]}
        assert JobForm(form_of_source("job_1", body), 6).body == body
