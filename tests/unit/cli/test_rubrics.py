"""`assay rubrics`: lists, shows and stores rubric sets."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rubrics import OFFICIAL
from tests.stub_service import Answer, StubService, stub_service
from tests.unit.cli.test_cli import assay

ID = "rset_" + 32 * "1"
SET = {"id": ID, "object": "rubric_set", "name": "mine", "tasks": {}}
WHOLE = {"rubric": None, "score_examples": None}


@pytest.fixture
def service() -> Iterator[StubService]:
    with stub_service() as stub:
        yield stub


def test_lists_sets_with_their_tasks(service: StubService) -> None:
    row = SET | {"tasks": 3, "created_at": "2026-11-24T00:00:00Z"}
    service.on(
        "GET /v1/rubric-sets?limit=20", Answer({"data": [row], "has_more": False, "next_cursor": None})
    )
    service.on(
        "GET /v1/rubric-sets?limit=500", Answer({"data": [row], "has_more": False, "next_cursor": None})
    )
    shown = assay(service, "rubrics").stdout
    assert ID in shown
    assert "mine" in shown
    assert json.loads(assay(service, "rubrics", "--json").stdout)["data"] == [row]


def test_shows_a_set(service: StubService) -> None:
    service.on(f"GET /v1/rubric-sets/{ID}", Answer(SET | WHOLE))
    assert json.loads(assay(service, "rubrics", ID).stdout) == SET | WHOLE


def test_stores_released_files_byte_for_byte_by_their_names(service: StubService, tmp_path: Path) -> None:
    odd = OFFICIAL | {"Toxicity.txt": OFFICIAL["Toxicity.txt"].replace("\n", "\r\n")}
    for name, text in odd.items():
        (tmp_path / name).write_bytes(text.encode())
    service.on("POST /v1/rubric-sets", Answer(SET | WHOLE, 201))
    files = [str(tmp_path / name) for name in odd]
    output = assay(service, "rubrics", *files, "--name", "released").stdout
    assert output.strip() == ID
    assert service.asked[-1].body == {"tasks": odd, "name": "released"}


def test_stores_a_json_file_as_it_is(service: StubService, tmp_path: Path) -> None:
    body = {"name": "own", "tasks": {"essay": {"prompt": "{context}"}}}
    (tmp_path / "own.json").write_text(json.dumps(body))
    service.on("POST /v1/rubric-sets", Answer(SET | WHOLE, 201))
    assert json.loads(assay(service, "rubrics", str(tmp_path / "own.json"), "--json").stdout) == SET | WHOLE
    assert service.asked[-1].body == body


def test_files_that_are_no_rubrics_are_told_by_name(service: StubService, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name, content in {
        "bad.json": b"{",
        "list.json": b"[]",
        "latin.txt": b"\xe9",
        "x.txt": b"x",
        "a/x.txt": b"y",
    }.items():
        (tmp_path / name).write_bytes(content)
    for names, words in (
        (["bad.json"], "not valid JSON"),
        (["list.json"], "must contain one rubric set"),
        (["latin.txt"], "is not UTF-8"),
        (["none.txt"], "cannot read"),
        (["bad.json", "x.txt"], "give one JSON file"),
        (["x.txt", "a/x.txt"], "have the same name"),
    ):
        result = assay(service, "rubrics", *(str(tmp_path / name) for name in names))
        assert result.exit_code == 3
        assert words in " ".join(result.stderr.split())
    assert service.asked == []
