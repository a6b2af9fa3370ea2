"""Bodies that are no JSON, are not ours, or are too long: always a 4xx, and never a row."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from app.api.http.strict_json import LARGE_BYTES
from tests.api.service import Json, Service, compact, job_body
from tests.observe import PATIENCE

pytestmark = pytest.mark.usefixtures("nothing_created")


def raw(field: str, literal: bytes) -> bytes:
    """A valid body with one more field, spelt out."""
    return compact(job_body(iterations=None))[:-1] + b"," + compact(field) + b":" + literal + b"}"


MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"personas=E-low",
    "half of it": compact(job_body())[:-5],
    "more than it": compact(job_body()) + b"{}",
    "single quotes": b"{'personas': []}",
    "comment": b"/* a job */ {}",
    "not UTF-8": raw("name", b'"\xff\xfe"'),
    "UTF-16": json.dumps(job_body()).encode("utf-16"),
    "NaN": raw("iterations", b"NaN"),
    "Infinity": raw("iterations", b"Infinity"),
    "minus Infinity": raw("seed", b"-Infinity"),
    "number beyond all floats": raw("iterations", b"1e999"),
    "number beyond all floats in a parameter": compact(job_body(models=None))[:-1]
    + b',"models":[{"model":"acme/acme-1","extra":{"x":1e999}}]}',
    "ten thousand digits": raw("iterations", b"9" * 10_000),
    "bottomless nesting": raw("name", b"[" * 100_000 + b"]" * 100_000),
    "deep nesting": raw("name", b"[" * 300 + b"]" * 300),
    "deep parameters": compact(job_body(models=None))[:-1]
    + b',"models":[{"model":"acme/acme-1","extra":{"x":'
    + b"[" * 900
    + b"]" * 900
    + b"}}]}",
    "the same key twice": raw("iterations", b"1")[:-1] + b',"iterations":2}',
    "contradictory traits": compact(job_body(personas=None))[:-1]
    + b',"personas":[{"id":"a","description":"b","traits":{"E":"low","E":"high"}}]}',
    "raw control character": raw("name", b'"a\x00b"'),
    "lone surrogate": raw("name", rb'"\ud800"'),
    "lone surrogate in a task": compact(job_body(tasks=None))[:-1] + rb',"tasks":["\ud800"]}',
    "lone surrogate in a key": raw("\ud800", b"1"),
    "lone surrogate in a trait": compact(job_body(personas=None))[:-1]
    + rb',"personas":[{"id":"a","description":"b","traits":{"\ud800":"low"}}]}',
    "lone surrogate in a parameter": compact(job_body(models=None))[:-1]
    + rb',"models":[{"model":"acme/acme-1","extra":{"x":"\udc00"}}]}',
    "null": b"null",
    "a list": b"[]",
    "a text": b'"job"',
    "a number": b"5",
}


class TestMalformedBodies:
    @pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
    def test_what_is_not_a_job_in_strict_json_is_refused(self, api: Service, body: bytes) -> None:
        response = api.send("/v1/jobs", body)
        assert response.status_code in {400, 422}, response.text

    def test_contradictory_traits_are_named(self, api: Service) -> None:
        response = api.send("/v1/jobs", MALFORMED["contradictory traits"])
        assert response.status_code == 400
        assert response.json()["code"] == "repeated_key"
        assert "'E'" in response.json()["detail"]

    @pytest.mark.parametrize(
        "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/xml", ""]
    )
    def test_other_media_types_are_refused(self, api: Service, content_type: str) -> None:
        response = api.send("/v1/jobs", compact(job_body()), content_type)
        assert response.status_code == 415
        assert "application/json" in response.json()["detail"]

    @pytest.mark.parametrize(
        "content_type", ["application/json; charset=utf-8", "application/merge-patch+json"]
    )
    def test_json_by_another_name_is_read(self, api: Service, content_type: str) -> None:
        assert api.send("/v1/jobs/plan", compact(job_body()), content_type).status_code == 200

    @pytest.mark.parametrize(
        "wrong",
        [
            {"budget": 1, "iterations": "many", "unknown": 1},
            {"models": [1, {"model": 1}]},
            {"questions": [None]},
            {"personas": {}},
        ],
        ids=str,
    )
    def test_a_long_one_is_answered_as_a_short_one(self, api: Service, wrong: Json) -> None:
        short = compact(job_body(**wrong))
        told = [api.send("/v1/jobs", body).json()["errors"] for body in (short, short + b" " * LARGE_BYTES)]
        assert told[0] == told[1] != []


class TestTooLargeBodies:
    BODY = compact(job_body(name="x" * (10 << 20)))

    @pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/plan"])
    def test_ten_megabytes_are_too_many(self, api: Service, path: str) -> None:
        assert api.send(path, self.BODY).status_code == 413

    def test_ten_megabytes_in_chunks_are_too_many(self, api: Service) -> None:
        def chunks() -> Iterator[bytes]:
            for start in range(0, len(self.BODY), 1 << 20):
                yield self.BODY[start : start + (1 << 20)]

        response = api.http.post("/v1/jobs", content=chunks(), headers={"content-type": "application/json"})
        assert response.status_code == 413
        assert "transfer-encoding" in response.request.headers

    def test_the_length_alone_is_enough(self, api: Service) -> None:
        answer = speak(
            api,
            b"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99999999\r\n\r\n",
        )
        assert answer.startswith(b"HTTP/1.1 413 ")


def speak(api: Service, request: bytes) -> bytes:
    """The first bytes of the answer to a request that no client library would send."""
    parts = urlsplit(api.url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=PATIENCE) as connection:
        connection.sendall(request)
        return connection.recv(65536)
