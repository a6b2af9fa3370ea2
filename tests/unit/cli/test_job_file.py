import io
from pathlib import Path

import pytest

from persona_assay import ProblemError, ProblemField
from persona_assay.terminal import text_files
from persona_assay.terminal.job_file import JobFile, changed_fields, line_of, read_job_file
from persona_assay.terminal.outcome import CommandError


def load(text: str) -> object:
    return read_job_file("-", io.StringIO(text)).job


class TestReading:
    def test_reads_yaml(self) -> None:
        job = load("personas: [E-high]\nmetadata: {commit: abc}\niterations: 2\n")
        assert job == {"personas": ["E-high"], "metadata": {"commit": "abc"}, "iterations": 2}

    def test_reads_json(self) -> None:
        assert load('{"personas": ["E-high"], "seed": 18446744073709551615}') == {
            "personas": ["E-high"],
            "seed": 18446744073709551615,
        }

    def test_reads_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "job.yaml").write_text("name: 日本語", encoding="utf-8")
        assert read_job_file(str(tmp_path / "job.yaml"), io.StringIO()).job == {"name": "日本語"}

    def test_a_date_stays_text_because_json_has_none(self) -> None:
        assert load("name: 2026-11-21") == {"name": "2026-11-21"}

    def test_the_trait_n_is_text_and_not_a_truth_value(self) -> None:
        assert load("traits: {N: low}") == {"traits": {"N": "low"}}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("seed: 1\nseed: 2", "line 2, column 1: an object has the name 'seed' twice"),
            ('{"seed": 1, "seed": 2}', "duplicate key 'seed'"),
            ("metadata: {[1]: x}", "line 1, column 12: the name of a member must be a text"),
            ('{"a":' * 100_000, "nested too deeply"),
            ("{", "not valid YAML or JSON"),
            ('{"seed": 1\n "tasks": []}', "line 2, column 2: Expecting ',' delimiter"),
            ("name: x\npersonas: [a\ntasks: [b]", "line 3, column 6: expected ',' or ']'"),
            ("when: !!python/object:os.system {}", "not valid YAML or JSON"),
            ("- a\n- b", "must contain one job"),
            ("", "must contain one job"),
        ],
    )
    def test_what_cannot_be_a_job_is_refused_with_the_reason(self, text: str, reason: str) -> None:
        with pytest.raises(CommandError, match=reason):
            load(text)

    def test_a_longer_file_is_refused_before_it_is_parsed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(text_files, "MOST_CHARACTERS", 20)
        (tmp_path / "job.json").write_text('{"name": "a long name"}')
        with pytest.raises(CommandError, match=r"job\.json has more than 20 characters"):
            read_job_file(str(tmp_path / "job.json"), io.StringIO())

    def test_a_missing_file_is_named(self) -> None:
        with pytest.raises(CommandError, match=r"cannot read nowhere\.yaml: No such file"):
            read_job_file("nowhere.yaml", io.StringIO())

    def test_a_file_that_is_not_text_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "job.json").write_bytes(b"\xff\xfe")
        with pytest.raises(CommandError, match="not UTF-8"):
            read_job_file(str(tmp_path / "job.json"), io.StringIO())


class TestChanges:
    def test_a_value_that_is_not_yaml_is_refused_with_the_reason(self) -> None:
        assert changed_fields(["tasks=[essay]", "seed=3"]) == {"tasks": ["essay"], "seed": 3}
        with pytest.raises(CommandError, match=r"--set tasks: the value is not valid YAML: line 1, column 2"):
            changed_fields(["tasks=["])


YAML = """
personas: [E-high]
tasks:
  - essay
  - task: persona_consistency
    questions: 0
odd/key: 1
"""
JSON = '{\n  "personas": [\n    "E-high",\n    "E-hgih"]}'


class TestPlaces:
    @pytest.mark.parametrize(
        ("text", "pointer", "line"),
        [
            (YAML, "/personas/0", 2),
            (YAML, "/tasks/0", 4),
            (YAML, "/tasks/1/questions", 6),
            (YAML, "/odd~1key", 7),
            (YAML, "/tasks/1/atomic", 5),
            (YAML, "/tasks/7", 3),
            (YAML, "/models", None),
            (YAML, "", None),
            (JSON, "/personas/1", 4),
            ('{"personas":\t[]}', "/personas", None),
        ],
    )
    def test_a_pointer_leads_to_the_line_of_the_field_or_of_what_should_hold_it(
        self, text: str, pointer: str, line: int | None
    ) -> None:
        assert line_of(pointer, text) == line

    def test_a_refusal_says_where_in_the_file_each_field_stands(self) -> None:
        file = JobFile("job.yaml", YAML, {"personas": ["E-high"], "tasks": ["essay"]})
        fields = [ProblemField("/tasks/0", "no such task"), ProblemField("/models", "is missing")]
        with pytest.raises(ProblemError, match="2 fields are invalid") as caught, file.places():
            raise ProblemError(422, "2 fields are invalid", "invalid", fields, "req_1")
        assert [field.pointer for field in caught.value.fields] == ["/tasks/0 (job.yaml, line 4)", "/models"]
        assert caught.value.request_id == "req_1"
