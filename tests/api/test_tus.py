"""Uploads in parts: the tus protocol by a client of others, cuts at any place, and what is wrong with files."""

import base64
import gzip
import hashlib
import io
import json
import random
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tusclient.client import TusClient

from app.api.uploads.routes import PIECE_BYTES
from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from persona_assay import AssayClient, AssayError
from persona_assay.types import Upload
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import Json, Service
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.observe import eventually

PART = "application/offset+octet-stream"
LINES: list[Json] = [
    {"persona": "E-low", "task": "essay", "text": f"I stay at home on evening {n}. It is quiet."}
    for n in range(40)
]


def jsonl(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def begin(api: Service, size: int, **headers: str) -> str:
    """The path of a new upload."""
    made = api.post("/v1/uploads", headers={"Upload-Length": str(size), "Tus-Resumable": "1.0.0"} | headers)
    assert made.status_code == 201, made.text
    assert made.headers["location"] == f"/v1/uploads/{made.json()['id']}"
    assert made.headers["tus-resumable"] == "1.0.0"
    return made.headers["location"]


def patch(
    api: Service, path: str, offset: int, part: bytes | Iterator[bytes], **headers: str
) -> httpx2.Response:
    given = {"Upload-Offset": str(offset), "Content-Type": PART} | headers
    return api.http.patch(path, content=part, headers=given)


def memory(pid: int) -> int:
    """The most that a process has held, in KiB."""
    [most] = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(most)


def uploaded(api: Service, content: bytes) -> Json:
    """An upload with this content."""
    path = begin(api, len(content))
    assert patch(api, path, 0, content).status_code == 204
    found: Json = api.get(path).json()
    return found


class TestProtocol:
    def test_a_client_of_others_uploads_in_chunks_with_checksums(self, api: Service) -> None:
        content = jsonl(LINES)
        uploader = TusClient(f"{api.url}/v1/uploads").uploader(
            file_stream=io.BytesIO(content),
            chunk_size=333,
            upload_checksum=True,
            metadata={"filename": "évenings.jsonl"},
        )
        uploader.upload()
        found = api.get(str(uploader.url).removeprefix(api.url)).json()
        assert (found["status"], found["records"], found["name"]) == ("ready", 40, "évenings.jsonl")
        assert found["received"] == found["size"] == len(content)
        assert api.count("SELECT count(DISTINCT text) FROM upload_records") == 40

    def test_the_same_client_resumes_where_another_broke_off(self, api: Service) -> None:
        content = jsonl(LINES)
        first = TusClient(f"{api.url}/v1/uploads").uploader(file_stream=io.BytesIO(content), chunk_size=500)
        first.upload(stop_at=1000)
        second = TusClient(f"{api.url}/v1/uploads").uploader(
            file_stream=io.BytesIO(content), chunk_size=500, url=first.url
        )
        assert second.offset == 1000
        second.upload()
        assert api.get(str(first.url).removeprefix(api.url)).json()["records"] == 40

    def test_post_with_a_method_override_adds_a_part(self, api: Service) -> None:
        content = jsonl(LINES)
        path = begin(api, len(content))
        headers = {"Upload-Offset": "0", "Content-Type": PART, "Tus-Resumable": "1.0.0"}
        for override in ("PATCH", "patch"):
            sent = api.http.post(
                path,
                content=content[int(headers["Upload-Offset"]) :][: len(content) // 2],
                headers=headers | {"X-HTTP-Method-Override": override},
            )
            assert sent.status_code == 204, sent.text
            headers["Upload-Offset"] = sent.headers["upload-offset"]
        assert api.get(path).json()["received"] == len(content) // 2 * 2
        refused = api.http.post(path, headers={"X-HTTP-Method-Override": "DELETE"})
        assert refused.status_code == 405
        assert api.get(path).status_code == 200

    def test_our_client_sends_a_file_and_goes_on_with_it(self, api: Service, tmp_path: Path) -> None:
        text = "x" * 1000
        file = tmp_path / "texts.jsonl"
        line = json.dumps({"persona": "E-low", "task": "essay", "text": text})
        file.write_text(f"{line}\n" * 6000)
        with AssayClient(api.url) as client:
            begun = client.create_upload(file.stat().st_size, name=file.name)
            client.add_upload_part(begun["id"], 0, file.read_bytes()[:777])
            found = client.upload(file, upload_id=begun["id"])
            assert (found["status"], found["records"], found["received"]) == ("ready", 6000, found["size"])

    def test_our_client_finds_its_upload_again_and_sends_only_the_rest(
        self, api: Service, tmp_path: Path
    ) -> None:
        """By the file's digest: under another name, too, and not after a change."""
        file, moved = tmp_path / "texts.jsonl", tmp_path / "other.jsonl"
        file.write_bytes(jsonl([ONE | {"text": "x" * 1000}] * 9000))
        moved.write_bytes(file.read_bytes())
        size = file.stat().st_size
        told: list[Upload] = []

        def stop_within(upload: Upload) -> None:
            if upload["received"]:
                raise KeyboardInterrupt

        with AssayClient(api.url) as client:
            with pytest.raises(KeyboardInterrupt):
                client.upload(file, on_progress=stop_within)
            found = client.upload(moved, on_progress=told.append)
            assert (found["status"], found["records"], found["name"]) == ("ready", 9000, "texts.jsonl")
            assert [each["received"] for each in told] == [4194304, 8388608, size]
            assert client.upload(file)["id"] == found["id"]
            file.write_bytes(jsonl([ONE | {"text": "y" * 1000}] * 9000))
            assert file.stat().st_size == size
            with pytest.raises(AssayError, match="is not an upload of"):
                client.upload(file, upload_id=found["id"])
            assert client.upload(file)["id"] != found["id"]

    def test_our_client_goes_on_where_a_part_arrived_whose_answer_was_lost(
        self, api: Service, tmp_path: Path
    ) -> None:
        file = tmp_path / "texts.jsonl"
        file.write_bytes(jsonl(LINES))

        def send_first(upload: Upload) -> None:
            if not upload["received"]:
                assert patch(api, f"/v1/uploads/{upload['id']}", 0, jsonl(LINES[:3])).status_code == 204

        with AssayClient(api.url) as client:
            assert client.upload(file, on_progress=send_first)["records"] == 40

    def test_our_client_does_not_send_a_file_that_changes_and_stops_at_an_error(
        self, api: Service, tmp_path: Path
    ) -> None:
        file = tmp_path / "texts.jsonl"
        file.write_bytes(jsonl([ONE | {"run": "x"}, *[ONE | {"text": "x" * 1000}] * 9000]))
        with AssayClient(api.url) as client:
            found = client.upload(file)
            assert (found["status"], found["received"], found["error_count"]) == ("invalid", 4194304, 1)
            file.write_bytes(jsonl(LINES))
            with pytest.raises(AssayError, match="was changed while it was sent"):
                client.upload(file, on_progress=lambda _: file.write_bytes(jsonl(LINES[1:])))
            file.write_bytes(b"")
            with pytest.raises(AssayError, match="at least 1"):
                client.upload(file)

    @pytest.mark.parametrize(
        ("method", "path", "headers", "status"),
        [
            ("POST", "/v1/uploads", {}, 422),
            ("POST", "/v1/uploads", {"Upload-Length": "0"}, 422),
            ("POST", "/v1/uploads", {"Upload-Length": str(2**40)}, 413),
            ("POST", "/v1/uploads", {"Upload-Length": "5", "Tus-Resumable": "0.2.2"}, 412),
            ("HEAD", f"/v1/uploads/upl_{'0' * 26}", {}, 404),
            ("PATCH", f"/v1/uploads/upl_{'0' * 26}", {"Upload-Offset": "0", "Content-Type": PART}, 404),
            ("PATCH", f"/v1/uploads/upl_{'0' * 26}", {"Upload-Offset": "-1", "Content-Type": PART}, 422),
            ("PATCH", "/v1/uploads/other", {"Upload-Offset": "0", "Content-Type": PART}, 404),
        ],
    )
    def test_errors_say_the_version_of_the_protocol(
        self, api: Service, method: str, path: str, headers: dict[str, str], status: int
    ) -> None:
        refused = api.http.request(method, path, headers=headers)
        assert (refused.status_code, refused.headers["tus-resumable"]) == (status, "1.0.0")

    def test_the_server_says_what_it_speaks(self, api: Service) -> None:
        said = api.http.options("/v1/uploads")
        assert said.status_code == 204
        assert said.headers["tus-version"] == "1.0.0"
        assert said.headers["tus-extension"] == "creation,expiration,checksum,termination"
        assert int(said.headers["tus-max-size"]) == 2 * 1024**3
        refused = api.post("/v1/uploads", headers={"Upload-Length": "5", "Tus-Resumable": "0.2.2"})
        assert (refused.status_code, refused.headers["tus-version"]) == (412, "1.0.0")

    def test_a_head_tells_where_to_go_on(self, api: Service) -> None:
        path = begin(api, 100)
        patch(api, path, 0, b"{")
        told = api.http.head(path)
        assert told.status_code == 200
        assert told.headers["upload-offset"] == "1"
        assert told.headers["upload-length"] == "100"
        assert told.headers["cache-control"] == "no-store"
        assert told.headers["upload-expires"].endswith("GMT")
        assert "upload-metadata" not in told.headers

    def test_what_the_client_said_of_the_file_is_told_again(self, api: Service) -> None:
        """The protocol: answers to HEAD must have the header as it was given."""
        given = f"z eg==,filename {base64.b64encode('é'.encode() * 200).decode()},empty,a YQ=="
        path = begin(api, 100, **{"Upload-Metadata": given})
        assert api.http.head(path).headers["upload-metadata"] == given
        found = api.get(path).json()
        assert found["metadata"] == {"z": "z", "filename": "é" * 200, "empty": "", "a": "a"}
        assert found["name"] == "é" * 200

    def test_a_part_at_another_place_is_a_409_and_changes_nothing(self, api: Service) -> None:
        content = jsonl(LINES)
        path = begin(api, len(content))
        assert patch(api, path, 0, content[:300]).status_code == 204
        for offset in (0, 299, 301):
            refused = patch(api, path, offset, content[offset:])
            assert (refused.status_code, refused.json()["code"]) == (409, "wrong_offset")
            assert refused.headers["upload-offset"] == "300"
        assert patch(api, path, 300, content[300:]).status_code == 204
        assert api.get(path).json()["records"] == 40

    @pytest.mark.parametrize("algorithm", ["sha1", "sha256", "md5"])
    def test_a_part_that_was_changed_on_the_way_is_a_460(self, api: Service, algorithm: str) -> None:
        content = jsonl(LINES)
        path = begin(api, len(content))
        digest = base64.b64encode(hashlib.new(algorithm, content).digest()).decode()
        checked = {"Upload-Checksum": f"{algorithm} {digest}"}
        refused = patch(api, path, 0, content.replace(b"quiet", b"quite"), **checked)
        assert (refused.status_code, refused.json()["code"]) == (460, "checksum_mismatch")
        assert api.get(path).json()["received"] == 0
        assert patch(api, path, 0, content, **checked).status_code == 204
        assert api.get(path).json()["status"] == "ready"

    @pytest.mark.parametrize("content", [jsonl(LINES), gzip.compress(jsonl(LINES)), b"", b"x"])
    def test_an_empty_part_changes_nothing(self, api: Service, content: bytes) -> None:
        """With a checksum, too, at the beginning and at the end."""
        path = begin(api, len(content) or 9)
        digest = base64.b64encode(hashlib.sha1(b"").digest()).decode()
        checks: list[Json] = [{}, {"Upload-Checksum": f"sha1 {digest}"}]
        for check in checks:
            assert patch(api, path, 0, b"", **check).headers["upload-offset"] == "0"
        assert api.get(path).json()["status"] == "receiving"
        patch(api, path, 0, content)
        found = api.get(path).json()
        for check in checks:
            assert patch(api, path, len(content), b"", **check).status_code == 204
        kept = api.get(path).json()
        assert kept == found
        assert api.rows()["upload_records"] == kept["records"]

    def test_a_long_part_at_a_wrong_place_is_refused_so_that_its_sender_sees_it(self, api: Service) -> None:
        """Though most of its 50 MB were not read."""
        path = begin(api, 60_000_000)
        for offset in (1, 59_000_000):
            refused = patch(api, path, offset, b"x" * 50_000_000)
            assert (refused.status_code, refused.headers["upload-offset"]) == (409, "0")
        too_long = patch(api, begin(api, 10), 0, b"x" * 50_000_000)
        assert too_long.status_code == 413

    def test_one_line_of_300_megabytes_is_an_error_and_not_held(self, api: Service) -> None:
        size = 300_000_000
        path = begin(api, size)

        def line() -> Iterator[bytes]:
            for _ in range(size // 1_000_000):
                yield b"x" * 1_000_000

        assert api.process is not None
        before = memory(api.process.pid)
        sent = patch(api, path, 0, line(), **{"Content-Length": str(size)})
        assert sent.status_code == 204, sent.text
        found = api.get(path).json()
        assert (found["status"], found["error_count"]) == ("invalid", 1)
        assert found["errors"][0]["message"].endswith("4,194,304 bytes")
        assert memory(api.process.pid) - before < 100 * 1024

    def test_what_is_wrong_with_requests_is_told(self, api: Service) -> None:
        path = begin(api, 10)
        assert patch(api, path, 0, b"x" * 11).status_code == 413
        assert patch(api, path, 0, b"x", **{"Content-Type": "application/json"}).status_code == 415
        assert patch(api, path, 0, b"x", **{"Upload-Checksum": "crc32 xx"}).status_code == 400
        assert patch(api, path, -1, b"x").status_code == 422
        assert api.http.patch(path, content=b"x", headers={"Content-Type": PART}).status_code == 422
        assert api.get(path).json()["received"] == 0
        for length in ("", "0", "-1", "x", "9" * 30):
            assert api.post("/v1/uploads", headers={"Upload-Length": length}).status_code == 422
        too_large = api.post("/v1/uploads", headers={"Upload-Length": str(2 * 1024**3 + 1)})
        assert (too_large.status_code, too_large.json()["code"]) == (413, "upload_too_large")
        for metadata in ("filename %", "filename 4pyT4p", "filename AA==", "a YQ==,a YQ==", "a YQ==,,b YQ=="):
            headers = {"Upload-Length": "5", "Upload-Metadata": metadata}
            refused = api.post("/v1/uploads", headers=headers)
            assert refused.json()["errors"][0]["pointer"] == "/header/Upload-Metadata"
        assert api.http.head("/v1/uploads/upl_x").status_code == 404

    def test_a_deleted_upload_leaves_nothing(self, api: Service) -> None:
        found = uploaded(api, jsonl(LINES))
        assert api.http.delete(f"/v1/uploads/{found['id']}").status_code == 204
        assert api.get(f"/v1/uploads/{found['id']}").status_code == 404
        assert api.rows()["upload_records"] == 0

    def test_uploads_are_listed_newest_first(self, api: Service) -> None:
        paths = [begin(api, 10) for _ in range(3)]
        listed = [f"/v1/uploads/{each['id']}" for each in api.walk("/v1/uploads", limit=2)]
        assert listed[:3] == paths[::-1]

    def test_a_tenant_has_so_many(self, api: Service) -> None:
        api.empty("uploads")
        for _ in range(4):
            begin(api, 2 * 1024**3)
        refused = api.post("/v1/uploads", headers={"Upload-Length": "1"})
        assert (refused.status_code, refused.json()["code"]) == (429, "upload_quota")
        api.empty("uploads")
        for _ in range(100):
            begin(api, 1)
        assert api.post("/v1/uploads", headers={"Upload-Length": "1"}).status_code == 429


class TestCuts:
    def test_a_file_cut_anywhere_has_each_record_once(self, api: Service) -> None:
        """In 60 parts of 1 to 150 bytes, some of them sent twice, some broken off in the middle."""
        content = "\ufeff".encode() + jsonl(LINES).replace(b"\n", b"\r\n\n").replace(
            b"quiet", "still ❄".encode()
        )
        chance = random.Random(4)
        path, at = begin(api, len(content)), 0
        while at < len(content):
            part = content[at : at + chance.randint(1, 150)]
            answer = patch(api, path, at, part)
            assert answer.status_code == 204
            assert patch(api, path, at, part).status_code == 409
            at = int(answer.headers["upload-offset"])
        found = api.get(path).json()
        assert (found["status"], found["records"]) == ("ready", 40)
        assert api.count("SELECT count(DISTINCT text) FROM upload_records WHERE text LIKE '%still ❄.'") == 40
        assert api.count("SELECT count(*) FROM upload_records WHERE unit_starts = '{0,29}'") == 10

    def test_what_came_before_a_connection_broke_is_kept(self, api: Service) -> None:
        lines = [{**LINES[0], "text": f"This is text {n}. {'Word ' * 400}"} for n in range(1000)]
        content = jsonl(lines)
        path, most = begin(api, len(content)), 3 * PIECE_BYTES // 2

        def broken() -> Iterator[bytes]:
            yield content[:most]
            assert eventually(lambda: api.get(path).json()["received"] >= PIECE_BYTES)
            raise RuntimeError("the cable was pulled")

        headers = {"Upload-Offset": "0", "Content-Type": PART, "Content-Length": str(len(content))}
        with pytest.raises(RuntimeError, match="cable"):
            httpx2.patch(f"{api.url}{path}", content=broken(), headers=headers, trust_env=False)
        assert eventually(lambda: api.get(path).json()["received"] == most)
        assert patch(api, path, most, content[most:]).status_code == 204
        assert api.get(path).json()["records"] == 1000
        assert api.count("SELECT count(DISTINCT text) FROM upload_records") == 1000

    def test_two_who_send_the_same_part_at_once_store_it_once(self, api: Service) -> None:
        content = jsonl(LINES)
        path = begin(api, len(content))
        with ThreadPoolExecutor(8) as several:
            answers = list(several.map(lambda _: patch(api, path, 0, content).status_code, range(8)))
        assert sorted(answers) == [204, *[409] * 7]
        assert api.rows()["upload_records"] == 40
        assert api.get(path).json()["records"] == 40


ONE = LINES[0]
WRONG: list[tuple[bytes, int, str, str]] = [
    (b"{", 1, "", "is not JSON"),
    (jsonl([ONE]) + b'{"persona": "E-low", "ta', 2, "", "is not JSON"),
    (b"[1]\n", 1, "", "must be an object"),
    (b"7\n", 1, "", "must be an object"),
    (b"null\n", 1, "", "must be an object"),
    (b'"text"\n', 1, "", "must be an object"),
    (b"{}\n", 1, "/persona", "is required"),
    (jsonl([ONE, ONE | {"run": "first"}]), 2, "/run", "must be a whole number"),
    (jsonl([ONE | {"run": -1}]), 1, "/run", "greater than or equal to 0"),
    (jsonl([ONE | {"run": 1.5}]), 1, "/run", "must be a whole number"),
    (jsonl([ONE | {"run": True}]), 1, "/run", "must be a whole number"),
    (jsonl([ONE | {"run": 10**30}]), 1, "/run", ""),
    (jsonl([ONE | {"text": None}]), 1, "/text", "is required"),
    (jsonl([ONE | {"text": 3}]), 1, "/text", "must be text"),
    (jsonl([ONE | {"text": ["a"]}]), 1, "/text", "must be text"),
    (jsonl([ONE | {"text": "a\0b"}]), 1, "/text", "U+0000"),
    (jsonl([ONE | {"task": "a\0b"}]), 1, "/task", "U+0000"),
    (jsonl([ONE | {"item": "a\0b"}]), 1, "/item", "U+0000"),
    (jsonl([ONE | {"text": "x" * 200_001}]), 1, "/text", "200000"),
    (jsonl([ONE | {"text": "\ud800"}]), 1, "/text", ""),
    (jsonl([ONE | {"task": "\udfff"}]), 1, "/task", ""),
    (jsonl([ONE | {"persona": "a b"}]), 1, "/persona", "pattern"),
    (jsonl([ONE | {"persona": ""}]), 1, "/persona", ""),
    (jsonl([ONE | {"model": "a\nb"}]), 1, "/model", "pattern"),
    (jsonl([ONE | {"modle": "gpt"}]), 1, "/modle", "did you mean 'model'"),
    (jsonl([ONE | {"instruction": 1000}]), 1, "/instruction", "less than or equal to 999"),
    (jsonl([ONE])[:-2] + b', "persona": "N-low"}\n', 1, "", "more than once"),
    (b"\n\n" + jsonl([ONE])[:-2] + b"\n", 3, "", "is not JSON"),
    (b'{"persona": NaN}\n', 1, "", "NaN is not JSON"),
    (b'{"run": ' + b"9" * 5000 + b"}\n", 1, "", "digits"),
    (b"[" * 100_000 + b"\n", 1, "", "nested too deeply"),
    (jsonl([ONE]).replace(b"quiet", b"qui\xe9t"), 1, "", "is not UTF-8"),
    (json.dumps(ONE).encode("utf-16"), 1, "", "is not UTF-8"),
    (json.dumps(ONE).encode("utf-16-le"), 1, "", ""),
    (jsonl([ONE]).decode().encode("utf-32-be"), 1, "", ""),
    (b"\0\0\0\0\n", 1, "", "is not JSON"),
    (gzip.compress(jsonl([ONE]))[:-9], 0, "", "can't be unpacked beyond byte"),
    (b"PAR1" + bytes(100) + b"PAR1", 0, "", "not a Parquet file"),
    (b"x" * (5 * 1024 * 1024) + b"\n" + jsonl([ONE]), 1, "", "4,194,304 bytes"),
    (jsonl([ONE | {"text": "y" * 4_300_000}]), 1, "", "4,194,304 bytes"),
    (jsonl([ONE | {"units": ["I stay at home on evening 9."]}]), 1, "/units/0", "is not in the text"),
    (b"persona,task,text\nE-low,essay,hello\n", 1, "", "is not JSON"),
    (b" \n\t\r\n\n", 0, "", "has no records"),
    (jsonl([ONE | {"text": "No! " * 39_999}]), 1, "/text", "sentences"),
]


class TestBadInput:
    @pytest.mark.parametrize(("content", "line", "field", "message"), WRONG, ids=range(len(WRONG)))
    def test_a_wrong_file_is_told_by_line_and_field_and_leaves_nothing(
        self, api: Service, content: bytes, line: int, field: str, message: str
    ) -> None:
        found = uploaded(api, content)
        assert (found["status"], found["records"]) == ("invalid", 0)
        first = found["errors"][0]
        assert (first["line"], first["field"]) == (line, field), first
        assert message in first["message"], first
        assert found["error_count"] >= len(found["errors"])
        assert api.rows()["upload_records"] == 0

    def test_errors_are_told_before_the_file_has_ended_and_records_of_before_go(self, api: Service) -> None:
        content = jsonl([*LINES, ONE | {"run": "x"}] + [ONE | {"item": 7}] * 30 + LINES)
        path = begin(api, len(content))
        good = len(jsonl(LINES))
        assert patch(api, path, 0, content[:good]).headers["upload-errors"] == "0"
        assert api.get(path).json()["records"] == api.rows()["upload_records"] == 40
        told = patch(api, path, good, content[good : good + 1000])
        assert int(told.headers["upload-errors"]) > 1
        found = api.get(path).json()
        assert (found["status"], found["records"], api.rows()["upload_records"]) == ("invalid", 0, 0)
        assert found["errors"][0] == {"line": 41, "field": "/run", "message": "must be a whole number"}
        assert patch(api, path, good + 1000, content[good + 1000 :]).status_code == 204
        found = api.get(path).json()
        assert (found["error_count"], len(found["errors"]), found["status"]) == (31, 20, "invalid")
        assert api.rows()["upload_records"] == 0


class TestJobs:
    def test_a_job_on_an_upload_has_the_results_of_one_with_the_texts_in_its_body(
        self, stack: Service
    ) -> None:
        lines = [
            {
                "persona": persona,
                "task": "essay",
                "model": model,
                "text": f"{thought}I love evening {n}. Do you?",
            }
            for persona in ("E-low", "N-high")
            for model in ("ours", "theirs")
            for n, thought in enumerate(("", "<think>Hm.</think>", ""))
        ] + [
            {
                "persona": "E-low",
                "task": "essay",
                "model": "ours",
                "text": "I can't help with that.",
                "run": 7,
            }
        ]
        body = {"personas": ["E-low", "N-high"], "tasks": ["essay"], "judges": ["simulated/sim-judge"]}
        upload = uploaded(stack, jsonl(lines))
        named = {**body, "responses": {"upload": upload["id"]}}
        plans = [
            stack.post("/v1/jobs/plan", each).json()["calls"]
            for each in (named, {**body, "responses": lines})
        ]
        assert plans[0] == plans[1]
        jobs = [stack.submit(each) for each in (named, {**body, "responses": lines})]
        assert jobs[0]["spec"]["responses"] == {"upload": upload["id"]}
        assert stack.http.delete(f"/v1/uploads/{upload['id']}").status_code == 204
        found = []
        for job in jobs:
            assert stack.wait(job["id"], "completed", "failed")["status"] == "completed"
            results = stack.get(f"/v1/jobs/{job['id']}/results").json()
            rows = list(stack.walk(f"/v1/jobs/{job['id']}/responses"))
            texts = [(row["model"], row["persona"], row["run"], row["status"], row["text"]) for row in rows]
            found.append((results["totals"], results["cells"], texts))
        assert found[0] == found[1]
        assert len(found[0][2]) == 13

    def test_what_is_wrong_with_records_is_told_by_line(self, api: Service) -> None:
        body = {"personas": ["E-low"], "tasks": ["essay"], "judges": ["simulated/sim-judge"]}
        one = LINES[0] | {"run": 0}
        upload = uploaded(api, jsonl([one, one, one | {"persona": "A-low", "run": 1}, one | {"task": "x"}]))
        refused = api.post("/v1/jobs", {**body, "responses": {"upload": upload["id"]}})
        assert refused.status_code == 422
        assert [each["pointer"] for each in refused.json()["errors"]] == [
            "/responses/upload/lines/2/run",
            "/responses/upload/lines/3/persona",
            "/responses/upload/lines/4/task",
        ]

    def test_an_upload_that_is_not_ready_or_not_there_is_a_422(self, api: Service) -> None:
        body = {"personas": ["E-low"], "tasks": ["essay"], "judges": ["simulated/sim-judge"]}
        path = begin(api, 100)
        for name in (path.rpartition("/")[2], uploaded(api, b"x")["id"], "upl_" + "0" * 26, "x"):
            for route in ("/v1/jobs", "/v1/jobs/plan"):
                refused = api.post(route, {**body, "responses": {"upload": name}})
                assert refused.status_code == 422
                assert refused.json()["errors"][0]["pointer"] == "/responses/upload"


class TestAccess:
    def test_another_tenant_sees_and_changes_nothing(
        self, databases: Databases, template_database: str
    ) -> None:
        with (
            databases.new("tus", template=template_database) as url,
            scratch_directory() as directory,
            EmbeddedValkey(directory / "valkey") as valkey,
            guarded(directory, url, valkey.url()) as api,
        ):
            keys = KeyMaker(url)
            ours, read = bearer(keys.make(Scope.SUBMIT)), bearer(keys.make(Scope.READ))
            theirs = bearer(keys.make(Scope.SUBMIT, tenant="other"))
            path = begin(api, 10, **ours)
            assert patch(api, path, 0, b"x", **read).status_code == 403
            assert api.get(path, headers=read).status_code == 200
            assert api.get(path, headers=theirs).status_code == 404
            assert patch(api, path, 0, b"x", **theirs).status_code == 404
            assert api.http.delete(path, headers=theirs).status_code == 404
            assert api.get("/v1/uploads", headers=theirs).json()["data"] == []
            assert api.http.head(path).status_code == 401
