"""Personas and question files that users bring along."""

import json

import pytest

from app.domain.instruments.persona import Persona, traits_of
from app.domain.jobs.imports import (
    PersonaFormat,
    persona_of_file,
    read_persona_list,
    read_personas,
    read_question_file,
)
from app.instruments.personagym_loader import load_personagym

JSON, JSONL, CSV = PersonaFormat
TASKS = list(load_personagym().tasks.values())

COWBOY = Persona("persona-1", "a cowboy")
NURSE = Persona("nurse", "a nurse, retired", traits_of({"E": "low", "A": "high"}))


class TestJson:
    @pytest.mark.parametrize(
        "content",
        [
            ["a cowboy", {"id": "nurse", "description": "a nurse, retired", "traits": {"E": "low", "A": "high"}}],
            {"personas": ["a cowboy", {"id": "nurse", "description": " a nurse, retired\n", "traits": {"E": "low", "A": "high"}}]},
            {"persona-1": "a cowboy", "nurse": {"description": "a nurse, retired", "traits": {"E": "low", "A": "high"}}},
        ],
    )  # fmt: skip
    def test_lists_and_mappings_are_read(self, content: object) -> None:
        assert read_personas(json.dumps(content), JSON).personas == (COWBOY, NURSE)

    def test_a_parsed_value_is_read_from_where_it_stands(self) -> None:
        assert read_persona_list(["a cowboy"], "/personas").personas == (COWBOY,)
        read = read_persona_list(["a", 3], "/personas")
        assert [error.pointer for error in read.errors] == ["/personas/1"]
        assert read_persona_list([], "/personas").errors[0].pointer == "/personas"

    def test_a_byte_order_mark_does_not_matter(self) -> None:
        assert read_personas('\ufeff["a cowboy"]', JSON).personas == (COWBOY,)

    @pytest.mark.parametrize(
        ("text", "pointer", "reason"),
        [
            ('["a",\n "b"', "", "line 2, column 5"),
            ("[" * 100_000, "", "too deeply"),
            ("3", "", "must be a list"),
            ("[]", "", "at least one persona"),
            ("", "", "line 1, column 1"),
            ('["a", 3]', "/1", "must be a description or an object"),
            ('["a", " "]', "/1/description", "not empty"),
            ('[{"id": "x"}]', "/0/description", "not empty"),
            ('[{"description": "a", "age": 3}]', "/0/age", "unknown field"),
            ('[{"description": "a", "id": 3}]', "/0/id", "letters, digits"),
            ('[{"description": "a", "id": "a b"}]', "/0/id", "letters, digits"),
            ('[{"description": "a", "traits": ["E"]}]', "/0/traits", "dimensions to levels"),
            ('[{"description": "a", "traits": {"E": 1}}]', "/0/traits", "dimensions to levels"),
            ('["a\\u0000"]', "/0/description", "U+0000"),
            ('["a\\ud800"]', "/0/description", "surrogates"),
            (json.dumps(["a" * 20_001]), "/0/description", "at most 20000 characters, not 20001"),
            ('[{"description": "a", "description": "b"}]', "", "'description' twice"),
            ('{"a b": "x"}', "/a b", "letters, digits"),
            ('{"a/b~": 3}', "/a~1b~0", "must be a description"),
            ('{"a": {"id": "b", "description": "x"}}', "/a", "without an id of its own"),
            ('[{"id": "x", "description": "a"}, {"id": "x", "description": "b"}]', "/1/id", "two personas"),
            ('["a", {"id": "persona-1", "description": "b"}]', "/0", "two personas"),
            ('[{"id": "persona-2", "description": "a"}, {"description": "b"}]', "/1", "two personas"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_named(self, text: str, pointer: str, reason: str) -> None:
        read = read_personas(text, JSON)
        assert read.personas == ()
        assert read.errors[0].pointer == pointer
        assert reason in read.errors[0].message

    def test_everything_wrong_is_named_at_once(self) -> None:
        read = read_personas('[3, "a", {"description": ""}]', JSON)
        assert [error.pointer for error in read.errors] == ["/0", "/2/description"]


class TestJsonLines:
    def test_each_line_is_a_persona_and_empty_ones_are_none(self) -> None:
        text = '"a cowboy"\r\n\n' + json.dumps(
            {"id": "nurse", "description": NURSE.description, "traits": {"E": "low", "A": "high"}}
        )
        assert read_personas(text, JSONL).personas == (COWBOY, NURSE)

    def test_a_line_separator_within_a_text_ends_no_line(self) -> None:
        assert read_personas('"a\u2028b"', JSONL).personas == (Persona("persona-1", "a\u2028b"),)

    def test_errors_have_the_line_s_number(self) -> None:
        read = read_personas('"a"\n\n{"x": 1\n["b"]\n{"id": "y"}', JSONL)
        assert [error.pointer for error in read.errors] == ["/lines/3", "/lines/4", "/lines/5/description"]


class TestCsv:
    @pytest.mark.parametrize(
        "text",
        [
            'description,id,traits\na cowboy,,\n"a nurse, retired",nurse,E=low; A=high\n',
            'id,traits,description\r\n,,a cowboy\r\n\r\nnurse,"{""E"": ""low"", ""A"": ""high""}","a nurse, retired"',
            '\ufeffDescription, ID ,Traits\na cowboy,,\n"a nurse, retired",nurse,"E=low;A=high;"',
        ],
    )
    def test_columns_may_stand_in_any_order(self, text: str) -> None:
        assert read_personas(text, CSV).personas == (COWBOY, NURSE)

    def test_a_description_alone_is_enough_and_may_have_lines(self) -> None:
        read = read_personas('description\n"a\nb"\n', CSV)
        assert read.personas == (Persona("persona-1", "a\nb"),)

    @pytest.mark.parametrize(
        ("text", "pointer", "reason"),
        [
            ("", "", "at least one persona"),
            ("description\n", "", "at least one persona"),
            ("name\na\n", "/lines/1", "must have description"),
            ("description,age\na,3\n", "/lines/1", "only id and traits"),
            ("description,description\na,b\n", "/lines/1", "must have description"),
            ("description,id\na,x\nb\n", "/lines/3", "has 1 fields, the header 2"),
            ("description\na\nb,c\n", "/lines/3", "has 2 fields, the header 1"),
            ("x" * 100_000, "/lines/1", "not 'xxx"),
            ('description\n"a\nb"\n"c', "/lines/4", "not CSV"),
            ("description,id\na,a b\n", "/lines/2/id", "letters, digits"),
            ('description,id\n"a\nb\nc",a b\n', "/lines/2/id", "letters, digits"),
            ('description,id\na,x\n\n"b\nc",y,z\n', "/lines/4", "has 3 fields"),
            ('"description\n",age\n', "/lines/1", "only id and traits"),
            ('description\n"a' + "\nb" * 1_000, "/lines/2", "not CSV"),
            ("description,traits\na,E\n", "/lines/2/traits", "must have the form"),
            ("description,traits\na,E=low;E=high\n", "/lines/2/traits", "twice"),
            ('description,traits\na,"{"\n', "/lines/2/traits", "not JSON"),
            ("description,id\n,x\n", "/lines/2/description", "not empty"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_line(self, text: str, pointer: str, reason: str) -> None:
        read = read_personas(text, CSV)
        assert read.personas == ()
        assert read.errors[0].pointer == pointer
        assert reason in read.errors[0].message


class TestTooMany:
    @pytest.mark.parametrize(
        ("form", "text"),
        [
            (PersonaFormat.JSON, json.dumps([1] * 50_000)),
            (PersonaFormat.JSON, json.dumps({str(n): 1 for n in range(50_000)})),
            (PersonaFormat.JSONL, "1\n" * 50_000),
            (PersonaFormat.CSV, "description\n" + "a,b\n" * 50_000),
        ],
        ids=["list", "mapping", "lines", "rows"],
    )
    def test_those_beyond_the_most_are_not_looked_at(self, form: PersonaFormat, text: str) -> None:
        *others, last = read_personas(text, form).errors
        assert last.message == "50,000 personas; at most 10,000"
        assert len(others) <= 10_000

    def test_as_many_as_there_may_be_are_read(self) -> None:
        for form, text in (
            (PersonaFormat.JSON, json.dumps(["a"] * 10_000)),
            (PersonaFormat.JSONL, '"a"\n' * 10_000),
            (PersonaFormat.CSV, "description\n" + "a\n" * 10_000),
        ):
            assert len(read_personas(text, form).personas) == 10_000


class TestQuestionFiles:
    def test_a_published_file_is_read_by_task(self) -> None:
        content = {"Expected Action": ["a?", "b?"], "Toxicity": ["c?"], "Linguistic Habits": ["d?"]}
        assert read_question_file(content, TASKS).questions == {
            "expected_action": ("a?", "b?"),
            "toxicity_control": ("c?",),
            "linguistic_habits": ("d?",),
        }

    @pytest.mark.parametrize(
        ("name", "task"),
        [
            ("Toxicity", "toxicity_control"),
            ("Toxicity Control", "toxicity_control"),
            ("toxicity_control", "toxicity_control"),
            ("TOXICITY-CONTROL", "toxicity_control"),
            ("Expected Action in Given Setting", "expected_action"),
            ("expectedAction", "expected_action"),
            ("Action Justification", "action_justification"),
            (" linguistic habits ", "linguistic_habits"),
            ("Persona Consistency", "persona_consistency"),
        ],
    )
    def test_a_task_has_several_names(self, name: str, task: str) -> None:
        assert read_question_file({name: ["a?"]}, TASKS).questions == {task: ("a?",)}

    @pytest.mark.parametrize(
        ("content", "pointer", "reason"),
        [
            ({"Toxicity": ["a?"], "Toxicity Control": ["b?"]}, "/Toxicity Control", "more than once"),
            ({"Kindness": ["a?"]}, "/Kindness", "known: expected_action, action_justification"),
            ({"Toxicity": "a?"}, "/Toxicity", "list of at least one"),
            ({"Toxicity": []}, "/Toxicity", "list of at least one"),
            ({"Toxicity": ["a?"] * 1001}, "/Toxicity", "at most 1,000"),
            ({"Toxicity": ["a?", 3, ""]}, "/Toxicity/1", "not empty"),
            ({}, "", "must be an object"),
            ([], "", "must be an object"),
        ],
    )
    def test_what_is_wrong_is_named(self, content: object, pointer: str, reason: str) -> None:
        read = read_question_file(content, TASKS)
        assert read.questions == {}
        assert read.errors[0].pointer == pointer
        assert reason in read.errors[0].message

    @pytest.mark.parametrize(
        ("name", "persona"),
        [
            ("A homosexual Black Atheist woman.json", "A homosexual Black Atheist woman"),
            ("questions/benchmark-v1/a cowboy.JSON", "a cowboy"),
            ("questions\\benchmark-v1\\a cowboy.json", "a cowboy"),
            ("questions/a cowboy.json", "a cowboy"),
            ("/data/PersonaGym/questions/benchmark-v1/a cowboy.json", "a cowboy"),
            ("questions/benchmark-v1/a nurse and/or doctor.json", "a nurse and/or doctor"),
            ("a nurse and/or doctor.json", "a nurse and/or doctor"),
            ("an actor/director.json", "an actor/director"),
            ("a fan of \\o/ and AC\\DC.json", "a fan of \\o/ and AC\\DC"),
            ("who asks questions/answers.json", "who asks questions/answers"),
            (" a nurse / midwife ", "a nurse / midwife"),
            (".json", ""),
        ],
    )
    def test_is_named_by_its_persona(self, name: str, persona: str) -> None:
        assert persona_of_file(name) == persona
