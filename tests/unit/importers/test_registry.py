"""Every kind of file: it is recognised, nothing of it is lost, and whatever is broken is refused with its place."""

import contextlib
import io
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.domain.errors import InvalidJobError
from app.domain.jobs.import_preview import ImportPreview
from app.domain.jobs.request import JobIn
from app.domain.sets.contract import PersonaSetIn, QuestionSetIn
from app.importers.records import Options
from app.importers.registry import KINDS
from app.importers.tool_scale import ToolScale
from tests.unit.importers.broken import broken
from tests.unit.importers.reading import read_import
from tests.unit.importers.samples import FILES, SERVICE, json_lines

GOLDEN = Path(__file__).parents[2] / "golden"
EVERY = [(kind, name) for kind, files in FILES.items() for name in files]


def imported(data: bytes, name: str = "", kind: str | None = None, **options: Any) -> ImportPreview:
    return read_import(data, name, kind, Options(**SERVICE, **options))


def check_whole(preview: ImportPreview) -> None:
    """Nothing is lost, and what is given can be sent."""
    assert preview.found == preview.mapped + preview.refused
    assert sum(each.count for each in preview.reasons) == preview.refused
    assert len(preview.refused_records) == min(preview.refused, 1_000)
    for each in preview.refused_records:
        assert each.reason
        assert each.place.startswith("/") or each.place == ""
    preview.encoded()
    if preview.job is not None:
        JobIn.model_validate(preview.job)
    if preview.persona_set is not None:
        PersonaSetIn.model_validate(preview.persona_set)
    if preview.question_set is not None:
        QuestionSetIn.model_validate(preview.question_set)


def test_there_is_a_file_of_every_kind() -> None:
    assert FILES.keys() | {"langsmith_dataset"} == {kind.name for kind in KINDS}, "that one is only refused"


@pytest.mark.parametrize(("kind", "name"), EVERY)
class TestEveryKind:
    def test_it_is_recognised_and_whole(self, kind: str, name: str) -> None:
        preview = imported(FILES[kind][name], name, persona="E-high")
        check_whole(preview)
        assert (preview.kind, preview.refused) == (kind, 0)
        assert preview.found > 0

    def test_whatever_is_broken_is_refused_with_its_place(self, kind: str, name: str) -> None:
        files = dict(broken(FILES[kind][name]))
        assert len(files) >= 40
        refused = 0
        for what, data in files.items():
            began = time.process_time()
            try:
                preview = imported(data, name)
            except InvalidJobError as error:
                refused += 1
                (wrong,) = error.errors
                assert wrong.message, what
            else:
                check_whole(preview)
                refused += preview.refused > 0
            assert time.process_time() - began < 10, what
        assert refused >= 10


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_file_of_one_kind_is_no_reason_to_fail_as_another(kind: str, name: str) -> None:
    for other in KINDS:
        with contextlib.suppress(InvalidJobError):
            check_whole(imported(FILES[kind][name], name, other.name))


class TestOptions:
    ROWS = FILES["table"]["rows.jsonl"]

    def test_the_job_has_the_persona_traits_task_and_model_that_were_chosen(self) -> None:
        chosen = Options(
            persona="a kind critic", traits={"A": "high"}, task="essay", model="our bot", **SERVICE
        )
        preview = read_import(self.ROWS, "", None, chosen)
        assert preview.job is not None
        (persona,) = preview.job["personas"]
        assert persona["description"] == "a kind critic"
        assert persona["traits"] == {"A": "high"}
        assert preview.job["tasks"] == ["essay"]
        assert {each["model"] for each in preview.job["responses"]} == {"our bot"}
        assert {each["persona"] for each in preview.job["responses"]} == {persona["id"]}

    def test_a_persona_of_the_service_is_only_named(self) -> None:
        preview = imported(self.ROWS, persona="E-high")
        assert preview.job is not None
        assert preview.job["personas"] == ["E-high"]

    def test_a_persona_has_the_same_id_in_every_file(self) -> None:
        one, other = imported(self.ROWS), imported(FILES["table"]["rows.parquet"])
        assert one.personas[0].name == other.personas[0].name

    def test_a_task_of_personagym_asks_the_prompts(self) -> None:
        preview = imported(self.ROWS + b'{"persona": "p", "response": "x"}\n', task="persona_consistency")
        assert preview.job is None or all("question" in each for each in preview.job["responses"])
        assert [each.reason for each in preview.refused_records] == ["has no question, which the task needs"]

    def test_columns_are_named(self) -> None:
        rows = b'{"said": "Hello you.", "who": "a clown"}\n{"said": 5, "who": "a clown"}\n'
        preview = imported(rows, columns={"text": "said", "persona": "who"})
        assert (preview.kind, preview.mapped) == ("table", 1)
        assert [each.place for each in preview.refused_records] == ["/lines/2/said"]

    def test_that_questions_name_no_task_is_said_only_of_such(self) -> None:
        named = imported(FILES["personagym"]["a cowboy.json"], "a cowboy.json")
        unnamed = imported(FILES["openai_evals"]["source.jsonl"])
        assert [any("name no task" in note for note in each.notes) for each in (named, unnamed)] == [
            False,
            True,
        ]

    def test_a_row_without_a_text_among_texts_is_refused_not_taken_as_a_persona(self) -> None:
        text = {"persona": "a clown", "response": "Hello you."}
        for rows in ([{"persona": "a king"}, text], [text, {"persona": "a king"}]):
            preview = imported(json_lines(*rows))
            check_whole(preview)
            assert preview.job is not None
            assert [each["description"] for each in preview.job["personas"]] == ["a clown"]
            assert [each.reason for each in preview.refused_records] == ["has no text"]

    def test_rows_that_are_taken_as_personas_say_how_to_name_the_column_of_texts(self) -> None:
        preview = imported(json_lines({"persona": "a clown", "answer": "Hello you."}))
        assert preview.persona_set is not None
        assert "Name it with column" in " ".join(preview.notes)

    def test_columns_beside_personas_that_are_not_taken_are_told(self) -> None:
        preview = imported(b"persona,[bot] chat\na shy person,I read.\n", "out.csv")
        assert preview.job is None
        assert "Not taken with personas: [bot] chat." in preview.notes


class TestScores:
    ROWS = b"".join(
        b'{"persona": "a clown", "response": "Ha.", "rating": %s}\n' % each
        for each in (b"4", b"2.5", b"null", b'"5"')
    )

    def test_are_shown_and_not_imported_unless_one_is_chosen(self) -> None:
        preview = imported(self.ROWS)
        assert [(each.name, each.count, each.lowest, each.highest) for each in preview.scores] == [
            ("rating", 3, 2.5, 5.0)
        ]
        assert preview.job is not None
        assert "judges" not in preview.job

    def test_that_one_is_an_imported_judges_verdict_on_the_whole_text(self) -> None:
        preview = imported(self.ROWS, score="rating", traits={"E": "high"})
        check_whole(preview)
        assert preview.job is not None
        assert [each.get("verdicts") for each in preview.job["responses"]] == [
            [{"judge": "rating", "score": 4}],
            None,
            [{"judge": "rating", "score": 5}],
        ]
        assert [each["imported"] for each in preview.job["judges"]] == ["rating"]
        assert [(each.place, each.reason) for each in preview.refused_records] == [
            ("/lines/2", "its score is no whole number")
        ]
        assert "Without the chosen score: 1 of 3 texts. Their verdicts are missing." in preview.notes

    def test_one_that_no_text_has_is_an_error_that_names_those_which_there_are(self) -> None:
        with pytest.raises(InvalidJobError, match="the file has no score 'ratings'; did you mean 'rating'"):
            imported(self.ROWS, score="ratings")

    def test_one_that_is_refused_wherever_it_is_given_is_there(self) -> None:
        rows = [{"persona": "p", "response": "x", "rating": each} for each in (4.5, None)]
        assert imported(json_lines(*rows), score="rating").refused == 1

    def test_of_an_answer_to_personagyms_question_it_is_the_grade(self) -> None:
        rows = b"".join(
            b'{"persona": "p", "response": "x", "question": "y?", "rating": %s}\n' % each
            for each in (b"5", b"null", b"0", b"6", b"1e400", b"true")
        )
        preview = imported(rows, score="rating", scale=ToolScale(1, 5), task="expected_action")
        check_whole(preview)
        assert preview.job is not None
        grades = [each.get("grades") for each in preview.job["responses"]]
        assert grades[0] == {"rating": 5}
        assert not any(grades[1:]), "a missing grade is no number"
        places = {each.place: each.reason for each in preview.refused_records}
        assert places == {
            "/lines/3": "its score is not on the scale from 1 to 5",
            "/lines/4": "its score is not on the scale from 1 to 5",
            "/lines/6": "its score is a yes or no, not on a scale",
        }
        assert [each["imported"] for each in preview.job["judges"]] == ["rating"]
        assert "reasoner" not in " ".join(preview.notes)

    @pytest.mark.parametrize("task", [None, "expected_action"])
    @pytest.mark.parametrize("numbers", [(0, 9, 10), (3, 9), (0.2, 1)])
    def test_of_another_scale_nothing_is_taken_until_the_scale_is_told(
        self, numbers: tuple[float, ...], task: str | None
    ) -> None:
        rows = json_lines(
            *({"persona": "p", "response": "x", "question": "y?", "rating": n} for n in numbers)
        )
        span = f"go from {min(numbers):g} to {max(numbers):g}"
        with pytest.raises(InvalidJobError, match=span) as caught:
            imported(rows, score="rating", task=task)
        assert [each.pointer for each in caught.value.errors] == ["/query/scale"]

    def test_of_a_scale_that_is_told_each_becomes_the_nearest_and_that_is_said(self) -> None:
        rows = json_lines(*({"persona": "p", "response": "x", "rating": n} for n in (*range(11), 11, -1)))
        preview = imported(rows, score="rating", scale=ToolScale.of("0-10"), traits={"E": "high"})
        check_whole(preview)
        assert preview.job is not None
        scores = [each["verdicts"][0]["score"] for each in preview.job["responses"]]
        assert scores == [1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5], "0, 2.5, 5, 7.5 and 10 are 1 to 5"
        assert [each.reason for each in preview.refused_records] == [
            "its score is not on the scale from 0 to 10"
        ] * 2
        said = "0 to 10, as the nearest of 0 → 1, 2.5 → 2, 5 → 3, 7.5 → 4, 10 → 5"
        assert preview.mapping["score"].startswith(said)
        assert said in preview.job["judges"][0]["provenance"]["note"]

    def test_it_is_of_one_trait(self) -> None:
        rows = b'{"persona": "p", "response": "x", "rating": 3}\n' * 2
        assert imported(rows, score="rating", traits={"E": "high", "A": "low"}).refused == 2


class TestRefusals:
    def test_each_is_listed_by_line_with_its_reason(self) -> None:
        lines = [
            b'{"persona": "a clown", "response": "Ha."}',
            b'{"persona": "a clown", "response": ""}',
            b"{",
            b'{"response": "Ha."}',
            b"5",
            b'{"persona": "a clown", "response": "\\u0000"}',
        ]
        preview = imported(b"\n".join(lines))
        check_whole(preview)
        assert [(each.place, each.reason.partition(" (")[0]) for each in preview.refused_records] == [
            ("/lines/2", "the text is empty"),
            ("/lines/3", "not JSON: Expecting property name enclosed in double quotes"),
            ("/lines/4", "has no persona"),
            ("/lines/5", "must be an object"),
            ("/lines/6", "the text must not contain the character U+0000"),
        ]

    def test_a_list_with_a_record_a_line_is_json_and_not_json_lines(self) -> None:
        row = b'{"persona": "a clown", "response": "Ha."}'
        preview = imported(b"[\n" + b",\n".join([row] * 3) + b"\n]\n")
        assert (preview.found, preview.mapped) == (3, 3)
        with pytest.raises(InvalidJobError, match=r"neither JSON nor JSON Lines: .*line 3, column 1"):
            imported(b"[\n" + row + b",\n")

    def test_lines_may_begin_with_spaces_and_the_first_may_be_broken(self) -> None:
        row = b' {"persona": "a clown", "response": "Ha."}\n'
        assert imported(row * 2).mapped == 2
        preview = imported(row[5:] + row * 2)
        assert (preview.mapped, [each.place for each in preview.refused_records]) == (2, ["/lines/1"])

    def test_a_name_that_stands_twice_in_an_object_is_refused_for_one_of_both_would_be_lost(self) -> None:
        twice = b'{"Expected Action": ["Why?"], "Expected Action": ["How?"]}'
        with pytest.raises(InvalidJobError, match="an object has the name 'Expected Action' twice"):
            imported(twice, "a cowboy.json")
        row = b'{"persona": "a clown", "response": "Ha."}\n'
        preview = imported(row + b'{"persona": "a clown", "response": "Ha.", "response": "Ho."}\n')
        assert (preview.mapped, preview.refused_records[0].place) == (1, "/lines/2")

    def test_all_are_counted_where_not_all_are_listed(self) -> None:
        preview = imported(b'{"persona": "a clown", "response": "Ha."}\n' + b"5\n" * 3_000)
        check_whole(preview)
        assert (preview.found, preview.refused, len(preview.refused_records)) == (3_001, 3_000, 1_000)

    def test_a_file_of_nothing_known_says_what_is_known(self) -> None:
        with pytest.raises(InvalidJobError, match="character_card, "):
            imported(b'{"a": 1}')

    def test_scores_that_personagym_saves_are_said_to_be_means(self) -> None:
        with pytest.raises(InvalidJobError, match="means by task"):
            imported(b'{"Toxicity Control": 4.9, "PersonaScore": 4.9}', "scores.json")

    def test_figures_that_the_atomic_papers_code_saves_are_said_to_be_none(self) -> None:
        with pytest.raises(InvalidJobError, match=r"import the atomic_scores\.txt"):
            imported(
                b'{"mean": 3.2, "acc_atom": 0.5, "ic_atom": 0.3, "rc_atom": 0.7}', "fidelity_scores.json"
            )

    def test_of_a_rubric_it_is_said_where_it_goes(self) -> None:
        with pytest.raises(InvalidJobError, match="assay rubrics FILE"):
            imported(b"You will be given {persona}.\n\nResponse: {response}\n", "Toxicity.txt")


@pytest.mark.parametrize(
    "text",
    [
        "1: 2",
        "? [a]\n: b",
        "[1, 2]",
        "text: !!binary aGFsbG8=\npersona: 2024-01-01",
        "a: &a [*a]\nprompts: *a\ntests: *a",
        "prompts: ['{{a}}']\ntests: [{vars: {a: &x [1]}}, {vars: {1: 2}}, 5]",
        "results: {results: [{promptIdx: 0, testIdx: 0, provider: 1, response: {output: x}, namedScores: {1: 2}, vars: {1: 2}}]}",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nprompts: *c\ntests: *c",
        "a: !!python/object:os.system x",
        "- " * 5_000,
        "{" * 600,
        "{name: A, description: x, personality: y, first_mes: z, 5: 6}",
        "- {persona: x, 1: abc, ~: d, [a]: e}",
        "{persona: x, response: y, 1: [{2: 3}]}",
    ],
)
def test_yaml_of_other_types_is_refused(text: str) -> None:
    for kind in (None, *(kind.name for kind in KINDS)):
        with contextlib.suppress(InvalidJobError):
            check_whole(imported(text.encode(), "a.yaml", kind))


def _repeated(characters: int, rows: int, *, encoded: bool) -> bytes:
    """A Parquet file with one long text in every row, which takes up its place once."""
    texts = pa.DictionaryArray.from_arrays([0] * rows, ["x" * characters])
    file = io.BytesIO()
    plain = texts if encoded else texts.dictionary_decode()
    pq.write_table(pa.table({"persona": ["p"] * rows, "response": plain}), file)
    return file.getvalue()


def test_names_of_yaml_are_texts_and_stand_once() -> None:
    preview = imported(b"{persona: x, true: abc}", "a.yaml")
    assert "Not taken with personas: true." in preview.notes
    with pytest.raises(InvalidJobError, match="line 2, column 1: an object has the name 'persona' twice"):
        imported(b"persona: x\npersona: y\n", "a.yaml")


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize(("characters", "rows"), [(20_000, 5_000), (8_000_000, 20)])
def test_a_text_in_every_row_of_a_parquet_file_is_no_bomb(characters: int, rows: int, encoded: bool) -> None:
    data = _repeated(characters, rows, encoded=encoded)
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    try:
        with pytest.raises(InvalidJobError, match="unpacks to"):
            imported(data)
        assert tracemalloc.get_traced_memory()[1] < 300 * 2**20
        assert pa.total_allocated_bytes() - before < 2**20
    finally:
        tracemalloc.stop()


def test_a_conversation_of_many_turns_is_read_in_one_pass() -> None:
    turn = [{"role": "user", "content": "And?"}, {"role": "assistant", "content": "Yes."}]
    began = time.process_time()
    preview = imported(json.dumps([{"messages": turn * 30_000}]).encode(), persona="p")
    assert preview.mapped == 30_000
    assert time.process_time() - began < 15


def test_a_table_that_is_broken_from_its_first_row_on_says_why() -> None:
    with pytest.raises(InvalidJobError, match="not CSV from here on: unexpected end of data"):
        imported(b'persona,response\na clown,"Ha.\n', "a.csv")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_more_records_than_are_taken_are_refused(name: str) -> None:
    heads = {"a.csv": b"persona,response\n", "a.jsonl": b'{"persona": "a", "response": "x"}\n'}
    data = heads[name] + {"a.csv": b"a,x\n", "a.jsonl": b"{}\n"}[name] * 500_002
    with pytest.raises(InvalidJobError, match="more than 500,000 records") as caught:
        imported(data, name)
    assert caught.value.errors[0].pointer.startswith("/lines/50000")


def test_a_million_small_lists_take_little_memory() -> None:
    tracemalloc.start()
    try:
        for data in (b"[" + b"[]," * 2_000_000 + b"[]]", b"5\n" * 2_000_000):
            with pytest.raises(InvalidJobError):
                imported(data)
        assert tracemalloc.get_traced_memory()[1] < 600 * 2**20
    finally:
        tracemalloc.stop()


class TestScoresWithoutTexts:
    FILE = FILES["atomic_scores"]["atomic_scores.txt"]

    def test_they_are_verdicts_of_an_imported_judge(self) -> None:
        preview = imported(self.FILE, traits={"O": "high"}, model="gpt-3.5")
        assert preview.job is not None
        assert (preview.job["personas"], preview.job["tasks"]) == (["O-high"], ["questionnaire"])
        assert [judge["imported"] for judge in preview.job["judges"]] == ["atomic_scores"]
        found = [
            (each["run"], each["item"], each["verdicts"][0]["scores"]) for each in preview.job["responses"]
        ]
        assert found == [
            (0, "O-1", [5, 1, "not_applicable"]),
            (0, "O-2", [4]),
            (1, "O-1", [2, 2]),
            (1, "O-2", ["unparsed", 3]),
        ]

    def test_a_number_that_is_no_score_of_theirs_is_refused(self) -> None:
        preview = imported(b"[[[5, 0], [4], [6], [true], 5, [1.0]], 7, []]", traits={"O": "high"})
        assert preview.mapped == 1
        places = ["/0/0", "/0/2", "/0/3", "/0/4", "/0/5", "/1", "/2"]
        assert [each.place for each in preview.refused_records] == places

    def test_they_are_on_one_trait(self) -> None:
        preview = imported(self.FILE, traits={"O": "high", "E": "low"})
        assert (preview.job, preview.refused) == (None, 4)


class TestTextsOfTheAtomicPapersCode:
    MANY = "persona_E_high_5_20250602-154501.json"
    ONE = "persona_E_low_0_20250602-154501.json"

    def responses(self, file: str, name: str | None = None, **options: Any) -> list[dict[str, Any]]:
        preview = imported(FILES["atomic_responses"][file], file if name is None else name, **options)
        assert preview.job is not None
        found: list[dict[str, Any]] = preview.job["responses"]
        return found

    def test_the_files_name_tells_the_papers_persona_and_the_wording(self) -> None:
        first, second = self.responses(self.MANY, f"results/bot/{self.MANY}")
        assert first == {
            "persona": "E-high",
            "task": "questionnaire",
            "model": "imported",
            "text": "I  love parties.\nI don\u2019t talk.",
            "units": ["I  love parties.", "I don't talk."],
            "item": "E-1",
            "instruction": 5,
        }
        assert second["item"] == "E-2"

    def test_an_essay_and_a_post_are_told_apart_by_the_task_that_is_chosen(self) -> None:
        (post,), (essay,) = self.responses(self.ONE), self.responses(self.ONE, task="essay")
        assert (post["task"], post["instruction"]) == ("social_media_post", 0)
        assert (essay["task"], essay["instruction"], essay["persona"]) == ("essay", 0, "E-low")

    def test_without_a_name_a_trait_tells_persona_and_items(self) -> None:
        first, _ = self.responses(self.MANY, "", traits={"O": "neutral"}, task="questionnaire")
        assert (first["persona"], first["item"]) == ("O-neutral", "O-1")
        assert "instruction" not in first

    def test_a_sentence_that_is_not_in_the_text_is_refused(self) -> None:
        data = {"0": {"raw_response": "I talk. I sing.", "atomic_response": ["I sing.", "I talk."]}, "x": {}}
        preview = imported(json.dumps(data).encode(), self.MANY)
        assert [(each.place, each.reason) for each in preview.refused_records] == [
            ("/0/atomic_response/1", "is not in the text after the sentences before it"),
            ("/x/raw_response", "is missing"),
        ]


def test_json_on_one_line_may_be_longer_than_a_line_of_rows() -> None:
    rows = [{"persona": "a clown", "response": "Ha. I laugh.", "note": "x" * 170_000}] * 100
    assert imported(json.dumps(rows).encode()).mapped == 100


def test_json_on_one_line_that_is_too_long_to_be_read_whole_is_told_so() -> None:
    with pytest.raises(InvalidJobError) as raised:
        imported(b'["' + b"x" * 68_000_000 + b'"]')
    assert "is read whole" in raised.value.errors[0].message


def test_a_long_cell_of_csv_does_not_end_the_table() -> None:
    long = b"x" * 140_000
    preview = imported(b"persona,response,note\na clown,Ha. I laugh.," + long + b"\na clown,Ho.,y\n", "a.csv")
    assert (preview.mapped, preview.refused) == (2, 0)


def test_broken_utf_16_is_told_as_such() -> None:
    with pytest.raises(InvalidJobError) as raised:
        imported('{"persona": "a clown"}'.encode("utf-16") + b"x")
    assert raised.value.errors[0].message.startswith("not UTF-16: byte ")
