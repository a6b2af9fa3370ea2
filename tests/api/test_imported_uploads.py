"""Files of other tools that are longer than a body may be: uploaded, read, and submitted as jobs."""

import json
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner, Result

from app.cli import app
from persona_assay import AssayClient
from persona_assay.terminal.importing import LARGE_BYTES
from tests.api.service import Json, Service, pointers
from tests.api.test_imports import BINARY, EVERY, GYM, PATH, WITH, read
from tests.api.test_tus import begin, jsonl, patch, uploaded
from tests.unit.importers.samples import FILES

PURPOSE = {"Upload-Metadata": "filename cm93cw==,purpose aW1wb3J0"}
ROWS = [{"persona": "a clown", "response": f"Ha {n}. I laugh.", "rating": 1 + n % 5} for n in range(250)]


def sent(api: Service, content: bytes) -> str:
    """The id of an upload of another tool's file."""
    path = begin(api, len(content), **PURPOSE)
    assert patch(api, path, 0, content).status_code == 204
    assert api.get(path).json()["format"] == "tool_file"
    return path.rpartition("/")[2]


def read_upload(api: Service, upload: str, **query: str | list[str]) -> httpx2.Response:
    return api.http.post(PATH, params={"upload": upload, **query})


def records(api: Service, upload: str) -> int:
    found: int = api.get(f"/v1/uploads/{upload}").json()["records"]
    assert api.count(f"SELECT count(*) FROM upload_records WHERE upload_id = '{upload}'") == found
    return found


def plan(api: Service, body: Json) -> httpx2.Response:
    return api.post("/v1/jobs/plan", WITH | body)


def assay(service: Service, *arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["import", *map(str, arguments)], env={"ASSAY_URL": service.url})


class TestRecords:
    @pytest.mark.parametrize(("kind", "name"), EVERY)
    def test_are_those_that_the_same_file_gives_as_a_body(self, api: Service, kind: str, name: str) -> None:
        query: dict[str, str | list[str]] = {
            "name": name,
            "trait": ["A=high", "N=low"] if name.startswith("verdicts") else ["E=high"],
        }
        whole = read(api, FILES[kind][name], **query).json()
        upload = sent(api, FILES[kind][name])
        answer = read_upload(api, upload, **query)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        job, expected = found.pop("job"), whole.pop("job")
        assert found == whole
        assert records(api, upload) == len(expected["responses"] if expected else ())
        if expected is not None:
            assert job == expected | {"responses": {"upload": upload}}
            more = GYM if any("question" in each for each in expected["responses"]) else {}
            assert plan(api, job | more).json()["calls"] == plan(api, expected | more).json()["calls"]

    def test_are_replaced_by_another_reading(self, api: Service) -> None:
        upload = sent(api, jsonl(ROWS))
        for trait in ("E=high", "E=low"):
            job = read_upload(api, upload, trait=trait, score="rating", persona="a mime").json()["job"]
            assert (records(api, upload), job["personas"][0]["traits"]) == (250, {"E": trait[2:]})
        answer = api.post("/v1/jobs", job)
        assert answer.status_code == 202, answer.text
        assert api.count("SELECT count(*) FROM responses") == 250

    def test_all_or_none_are_stored(self, api: Service) -> None:
        broken = sent(api, jsonl(ROWS) + b"\xff\n")
        answer = read_upload(api, broken)
        assert (answer.status_code, pointers(answer)) == (422, ["/lines/251"])
        assert records(api, broken) == 0

    def test_a_text_that_can_be_no_record_is_refused_and_the_others_are_not(self, api: Service) -> None:
        found = read_upload(api, sent(api, jsonl([*ROWS, {"persona": "p", "response": "Ha! " * 40_000}])))
        (refused,) = found.json()["refused_records"]
        assert (found.json()["mapped"], refused["place"]) == (250, "/lines/251")
        assert "sentences" in refused["reason"]


class TestRefused:
    def test_what_is_no_file_to_import(self, api: Service) -> None:
        texts = uploaded(api, jsonl([{"persona": "E-low", "task": "essay", "text": "I stay."}]))["id"]
        part = begin(api, 9, **PURPOSE).rpartition("/")[2]
        for upload, words in (
            ("upl_0", "no such upload"),
            (texts, "has records already"),
            (part, "0 of 9 bytes"),
        ):
            answer = read_upload(api, upload)
            assert (answer.status_code, pointers(answer)) == (422, ["/query/upload"])
            assert words in answer.json()["errors"][0]["message"]

    def test_an_upload_and_a_body(self, api: Service) -> None:
        given = {"upload": sent(api, jsonl(ROWS))}
        answer = api.http.post(PATH, content=b"{}", params=given, headers={"content-type": BINARY})
        assert (answer.status_code, pointers(answer)) == (422, ["/query/upload"])

    def test_a_job_on_a_file_that_was_not_read(self, api: Service) -> None:
        body = {"personas": ["E-high"], "tasks": ["essay"], "responses": {"upload": sent(api, jsonl(ROWS))}}
        answer = plan(api, body)
        assert (answer.status_code, pointers(answer)) == (422, ["/responses/upload"])
        assert "POST /v1/imports" in answer.json()["errors"][0]["message"]

    def test_another_purpose_and_a_longer_file(self, api: Service) -> None:
        odd = {"Upload-Length": "5", "Upload-Metadata": "purpose b3RoZXI="}
        assert pointers(api.post("/v1/uploads", headers=odd)) == ["/header/Upload-Metadata"]
        long = api.post("/v1/uploads", headers={"Upload-Length": str(2**28 + 1)} | PURPOSE)
        assert long.status_code == 413
        assert "268,435,456" in long.json()["detail"]


class TestCommand:
    def test_a_large_file_becomes_a_job_that_ends(self, stack: Service, tmp_path: Path) -> None:
        file = tmp_path / "rows.jsonl"
        rows = [{"persona": "a clown", "response": "Ha! " * 4000, "rating": 1 + n % 5} for n in range(600)]
        file.write_bytes(jsonl(rows))
        assert file.stat().st_size > 9_000_000
        result = assay(stack, file, "--trait", "E=high", "--score", "rating", "--submit")
        assert result.exit_code == 0, result.output
        assert "600 found, 600 imported, 0 refused" in result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        stack.wait(id_, "completed")
        (cell,) = stack.get(f"/v1/jobs/{id_}/results").json()["cells"]
        assert cell["metrics"]["mean"] == cell["metrics"]["mean"] | {"value": 3.0, "n": 600}

    def test_many_small_files_are_one_job(self, stack: Service, tmp_path: Path) -> None:
        files = [tmp_path / f"{n}.jsonl" for n in range(3)]
        for n, file in enumerate(files):
            row = {"persona": "a clown", "response": f"{n}" * 1000, "rating": n + 1}
            file.write_bytes(jsonl([row] * (LARGE_BYTES // 2000)))
        result = assay(stack, *files, "--trait", "E=high", "--score", "rating", "--submit")
        assert result.exit_code == 0, result.output
        (id_,) = (line for line in result.output.splitlines() if line.startswith("job_"))
        stack.wait(id_, "completed")
        (cell,) = stack.get(f"/v1/jobs/{id_}/results").json()["cells"]
        assert cell["metrics"]["mean"]["value"] == 2.0

    def test_of_several_files_each_large_one_is_a_job(self, api: Service, tmp_path: Path) -> None:
        sizes = {"small": 3, "large": 50, "larger": 60, "also small": 4}
        for name, texts in sizes.items():
            rows = [{"persona": "a clown", "response": "Ha, " * 25_000}] * texts
            (tmp_path / f"{name}.jsonl").write_bytes(jsonl(rows))
        files = [tmp_path / f"{name}.jsonl" for name in sizes]
        out = tmp_path / "jobs.json"
        result = assay(api, *files, "--trait", "E=high", "-o", out)
        assert result.exit_code == 0, result.output
        jobs = json.loads(out.read_text("utf-8"))
        assert [*jobs] == ["job", "job_2", "job_3"]
        assert len(jobs["job"]["responses"]) == sizes["small"] + sizes["also small"]
        for name, large in (("job_2", "large"), ("job_3", "larger")):
            assert records(api, jobs[name]["responses"]["upload"]) == sizes[large]
            answer = plan(api, jobs[name])
            assert answer.status_code == 200, answer.text

    def test_a_file_is_sent_once_however_often_it_is_read(self, api: Service, tmp_path: Path) -> None:
        file, out = tmp_path / "rows.jsonl", tmp_path / "job.json"
        file.write_bytes(jsonl(ROWS) * 400)
        for _ in range(2):
            assert assay(api, file, "-o", out).exit_code == 0
        [upload] = api.get("/v1/uploads").json()["data"]
        assert json.loads(out.read_text("utf-8"))["responses"] == {"upload": upload["id"]}
        with AssayClient(api.url) as client:
            texts = client.upload(file)
        assert (texts["id"] == upload["id"], texts["status"]) == (False, "invalid"), (
            "sent for another purpose"
        )
