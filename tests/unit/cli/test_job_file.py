import io
from pathlib import Path

import pytest

from app.client.errors import ClientError
from app.client.job_file import load_job


def load(text: str) -> dict[str, object]:
    return load_job("-", io.StringIO(text))


class TestLoadJob:
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
        assert load_job(str(tmp_path / "job.yaml"), io.StringIO()) == {"name": "日本語"}

    def test_a_date_stays_text_because_json_has_none(self) -> None:
        assert load("name: 2026-11-21") == {"name": "2026-11-21"}

    def test_the_trait_n_is_text_and_not_a_truth_value(self) -> None:
        assert load("traits: {N: low}") == {"traits": {"N": "low"}}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("seed: 1\nseed: 2", "'seed' is given twice"),
            ('{"seed": 1, "seed": 2}', "'seed' is given twice"),
            ("metadata: {1: x}", "key 1 must be text"),
            ("{", "neither YAML nor JSON"),
            ("name: [", "neither YAML nor JSON"),
            ("when: !!python/object:os.system {}", "neither YAML nor JSON"),
            ("- a\n- b", "must hold one job"),
            ("", "must hold one job"),
        ],
    )
    def test_what_cannot_be_a_job_is_refused_with_the_reason(self, text: str, reason: str) -> None:
        with pytest.raises(ClientError, match=reason):
            load(text)

    def test_a_missing_file_is_named(self) -> None:
        with pytest.raises(ClientError, match=r"cannot read nowhere\.yaml: No such file"):
            load_job("nowhere.yaml", io.StringIO())

    def test_a_file_that_is_not_text_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "job.json").write_bytes(b"\xff\xfe")
        with pytest.raises(ClientError, match="not UTF-8"):
            load_job(str(tmp_path / "job.json"), io.StringIO())
