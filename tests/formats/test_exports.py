"""Exports as the tools read them that they are for. These run in an environment of their own: `make test-formats`."""

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.api.test_personagym import gym_body
from tests.e2e.stack import Json, Stack

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "formats"
PYTHON = BUILT / "tools" / "bin" / "python"
EVERY_EVAL_EVER = BUILT / "every_eval_ever" / "bin" / "every_eval_ever"
BODY: Json = {
    "name": "Formats `of` others | <b>",
    "personas": ["E-low", "N-high"],
    "tasks": ["questionnaire", "essay"],
    "models": ["simulated/sim-drifting", {"model": "simulated/sim-refusing", "label": "shy/one: ü"}],
    "judges": ["simulated/sim-judge", "simulated/sim-judge-noisy"],
    "instructions": [0, 3],
    "iterations": 2,
}


@pytest.fixture(scope="module")
def atomic(common_stack: Stack) -> Json:
    return common_stack.ended(common_stack.submit(BODY))


@pytest.fixture(scope="module")
def gym(common_stack: Stack) -> Json:
    return common_stack.ended(common_stack.submit(gym_body(iterations=None)))


def exported(stack: Stack, job: Json, format_: str, directory: Path, **options: str) -> Path:
    """A format's files, unpacked."""
    address = f"/v1/jobs/{job['id']}/exports/{format_}"
    answer = stack.api.get(address, params=options)
    assert answer.status_code == 200, answer.text
    assert stack.api.get(address, params=options).content == answer.content
    path = directory / f"{format_}-export"
    if answer.headers["content-type"] == "application/zip":
        file = directory / "export.zip"
        file.write_bytes(answer.content)
        with zipfile.ZipFile(file) as packed:
            packed.extractall(path)
    else:
        path = path.with_suffix(".jsonl")
        path.write_bytes(answer.content)
    return path


def read(reader: str, path: Path) -> Json:
    """What a tool finds in it."""
    home = {"HOME": str(path.parent), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(
        [PYTHON, Path(__file__).with_name("read_exports.py"), reader, path],
        capture_output=True,
        text=True,
        env=os.environ | home,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: Json = json.loads(done.stdout.splitlines()[-1])
    return found


def responses(stack: Stack, job: Json) -> list[Json]:
    found, after = [], None
    while True:
        query = {"limit": 200} | ({} if after is None else {"after": after})
        page = stack.api.get(f"/v1/jobs/{job['id']}/responses", params=query).json()
        found += page["data"]
        after = page["next_cursor"]
        if after is None:
            return found


class TestDataset:
    def test_datasets_loads_every_table(self, common_stack: Stack, atomic: Json, tmp_path: Path) -> None:
        found = read("dataset", exported(common_stack, atomic, "dataset", tmp_path))
        results = common_stack.api.get(f"/v1/jobs/{atomic['id']}/results").json()
        given = responses(common_stack, atomic)
        assert list(found) == ["responses", "verdicts", "cells", "totals"]
        assert found["cells"]["rows"] == len(results["cells"])
        assert found["responses"]["rows"] == sum(len(each["levels"]) for each in given)
        card = (tmp_path / "dataset-export" / "README.md").read_text()
        assert "**Simulated" in card
        assert "<b>" not in card.partition("\n---\n")[2]

    def test_a_personagym_job_has_its_scores(self, common_stack: Stack, gym: Json, tmp_path: Path) -> None:
        found = read("dataset", exported(common_stack, gym, "dataset", tmp_path))
        assert found["persona_scores"]["rows"] > 0


class TestTraining:
    @pytest.mark.parametrize("unit", ["response", "sentence"])
    def test_preferences_have_trls_conversational_form(
        self, common_stack: Stack, atomic: Json, tmp_path: Path, unit: str
    ) -> None:
        file = exported(common_stack, atomic, "preferences", tmp_path, unit=unit, judge="simulated/sim-judge")
        found = read("lines", file)
        assert found["rows"] > 0
        messages = found["features"]["prompt"]
        for name in ("prompt", "chosen", "rejected"):
            # https://huggingface.co/docs/trl/dataset_formats: a preference data set with an explicit prompt
            assert found["features"][name] == messages
            assert [each.keys() for each in found["first"][name]] == [{"role", "content"}] * (
                2 if name == "prompt" else 1
            )

    def test_trl_prepares_them_for_its_trainers(
        self, common_stack: Stack, atomic: Json, tmp_path: Path
    ) -> None:
        file = exported(common_stack, atomic, "preferences", tmp_path, judge="simulated/sim-judge")
        pairs = [json.loads(line) for line in file.read_text().splitlines()]
        found = read("preferences", file)
        assert found["conversational"]
        assert found["explicit_prompts"]
        assert found["unpaired"] == {"true": len(pairs), "false": len(pairs)}
        for pair, templated in zip(pairs, found["templated"], strict=True):
            told, asked = (message["content"] for message in pair["prompt"])
            assert templated == {
                "prompt": f"<system>{told}</system><user>{asked}</user><assistant>",
                "chosen": f"{pair['chosen'][0]['content']}</assistant>",
                "rejected": f"{pair['rejected'][0]['content']}</assistant>",
            }

    def test_rewards_load(self, common_stack: Stack, atomic: Json, gym: Json, tmp_path: Path) -> None:
        for job in (atomic, gym):
            assert read("lines", exported(common_stack, job, "rewards", tmp_path))["rows"] > 0
            for file in tmp_path.glob("*.jsonl"):
                file.unlink()


class TestInspect:
    def test_its_reader_has_every_response_with_its_scores(
        self, common_stack: Stack, atomic: Json, tmp_path: Path
    ) -> None:
        found = read("inspect", exported(common_stack, atomic, "inspect", tmp_path))
        results = common_stack.api.get(f"/v1/jobs/{atomic['id']}/results").json()
        totals = {
            each["model"]: each["metrics"]["acc_atom"]["value"]
            for each in results["totals"]
            if each["by"] == ["model"]
        }
        given = responses(common_stack, atomic)
        assert len(found) == 2
        for log, label in ((each, each["metadata"]["model_label"]) for each in found.values()):
            own = [each for each in given if each["model"] == label]
            assert log["samples"] == log["summaries"] == log["total"] == len(own)
            assert log["status"] == "success"
            assert log["metadata"]["simulated"] == "true"
            assert log["results"] == {"acc_atom": totals[label]}
            assert sum(log["texts"].values()) == len(own)
            assert set(log["texts"]) == {each["text"] for each in own}
            assert log["roles"] == ["system", "user", "assistant"]
            assert log["scores"] == sum(
                each["acc_atom"] is not None for response in own for each in response["figures"]
            )

    def test_a_personagym_log_has_grades(self, common_stack: Stack, gym: Json, tmp_path: Path) -> None:
        (log,) = read("inspect", exported(common_stack, gym, "inspect", tmp_path)).values()
        assert "persona_score" in log["results"]


class TestEveryEvalEver:
    @pytest.mark.parametrize("which", ["atomic", "gym"])
    def test_every_record_and_row_is_valid_and_joined(
        self, common_stack: Stack, request: pytest.FixtureRequest, tmp_path: Path, which: str
    ) -> None:
        job: Json = request.getfixturevalue(which)
        found = read("every_eval_ever", exported(common_stack, job, "every_eval_ever", tmp_path))
        assert len(found) == len(job["models"])
        for name, record in found.items():
            assert record["errors"] == []
            assert record["rows"] == record["told_rows"] > 0
            assert record["hash_is_right"]
            assert record["same_path"]
            assert record["evaluations"] == [name]
            assert set(record["named"]) <= set(record["results"])

    @pytest.mark.skipif(not EVERY_EVAL_EVER.exists(), reason="needs Python 3.12 or later")
    @pytest.mark.parametrize("which", ["atomic", "gym"])
    def test_its_own_validator_has_nothing_to_say(
        self, common_stack: Stack, request: pytest.FixtureRequest, tmp_path: Path, which: str
    ) -> None:
        job: Json = request.getfixturevalue(which)
        folder = exported(common_stack, job, "every_eval_ever", tmp_path)
        files = [str(path) for path in sorted(folder.rglob("*.json*"))]
        done = subprocess.run(
            [EVERY_EVAL_EVER, "validate", "--format", "json", *files],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told = json.loads(done.stdout)
        assert len(files) == 2 * len(job["models"])
        assert {(each["file"], each["valid"]) for each in told} == {(file, True) for file in files}
