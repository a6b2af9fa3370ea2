"""Paths, methods, queries and headers that there are not: always a 4xx that names what is wrong, and never a row."""

import pytest

from tests.api.service import Service, job_body, pointers

pytestmark = pytest.mark.usefixtures("nothing_created")

ITEM_ROUTES = [
    ("GET", ""),
    ("DELETE", ""),
    ("POST", "/cancel"),
    ("POST", "/pause"),
    ("POST", "/resume"),
    ("GET", "/results"),
    ("GET", "/responses"),
    ("GET", "/report"),
]
STRANGE_IDS = {
    "unknown": "job_00000000000000000000000000",
    "not an id": "42",
    "slash": "job_%2Fetc",
    "unicode": "j%C3%B6b_%F0%9F%A6%8A",
    "not UTF-8": "%ff%fe",
    "NUL": "job_%00",
    "10 kB": "j" * 10_000,
    "quotes": "job_'%20OR%201=1--",
    "dots": "job_..",
}


ALLOWED = {
    "/v1/jobs": {"GET", "POST"},
    "/v1/jobs/job_00000000000000000000000000": {"GET", "PATCH", "DELETE"},
    "/v1/jobs/job_00000000000000000000000000/cancel": {"POST"},
    "/v1/jobs/job_00000000000000000000000000/pause": {"POST"},
    "/v1/jobs/job_00000000000000000000000000/resume": {"POST"},
    "/v1/jobs/job_00000000000000000000000000/retry": {"POST"},
    "/v1/jobs/job_00000000000000000000000000/results": {"GET"},
    "/v1/jobs/job_00000000000000000000000000/responses": {"GET"},
    "/v1/jobs/job_00000000000000000000000000/report": {"GET"},
    "/v1/personas": {"GET"},
    "/v1/tasks": {"GET"},
    "/v1/models": {"GET"},
    "/healthz": {"GET"},
    "/readyz": {"GET"},
}
NOT_ALLOWED = [
    (method, path)
    for path, allowed in ALLOWED.items()
    for method in ("HEAD", "PUT", "PATCH", "DELETE", "POST", "GET", "OPTIONS")
    if method not in allowed
]


class TestStrangePaths:
    @pytest.mark.parametrize(("method", "suffix"), ITEM_ROUTES)
    @pytest.mark.parametrize("job_id", STRANGE_IDS.values(), ids=STRANGE_IDS)
    def test_there_is_no_such_job(self, api: Service, method: str, suffix: str, job_id: str) -> None:
        response = api.http.request(method, f"/v1/jobs/{job_id}{suffix}")
        assert response.status_code == 404

    @pytest.mark.parametrize(
        "path", ["/nowhere", "/v1", "/v2/jobs", "/v1/jobs/", "/v1/job", "/v1/jobs/a/b/c", "//v1/jobs"]
    )
    def test_unknown_paths_are_problems_too(self, api: Service, path: str) -> None:
        response = api.http.get(f"{api.url}{path}", follow_redirects=False)
        assert response.status_code in {307, 404}

    @pytest.mark.parametrize(("method", "path"), NOT_ALLOWED)
    def test_other_methods_are_not_allowed(self, api: Service, method: str, path: str) -> None:
        response = api.http.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, ", ".join(sorted(ALLOWED[path])))


QUERIES: dict[str, tuple[str, str, str]] = {
    "unknown parameter": ("/v1/jobs", "stauts=queued", "/query/stauts"),
    "unknown parameter of a job": ("/v1/jobs/{id}", "fields=status", "/query/fields"),
    "unknown parameter of personas": ("/v1/personas", "set=big-five", "/query/set"),
    "metadata where there is none": ("/v1/jobs/{id}/responses", "metadata[a]=b", "/query/metadata[a]"),
    "metadata without a key": ("/v1/jobs", "metadata[]=b", "/query/metadata[]"),
    "metadata not closed": ("/v1/jobs", "metadata[a=b", "/query/metadata[a"),
    "NUL in a metadata key": ("/v1/jobs", "metadata[a%00]=b", "/query/metadata[a\0]"),
    "NUL in a metadata value": ("/v1/jobs", "metadata[a]=%00", "/query/metadata[a]"),
    "limit of 0": ("/v1/jobs", "limit=0", "/query/limit"),
    "limit beyond the most": ("/v1/jobs", "limit=501", "/query/limit"),
    "limit that is no number": ("/v1/jobs", "limit=ten", "/query/limit"),
    "limit of ten thousand digits": ("/v1/jobs", "limit=" + "9" * 10_000, "/query/limit"),
    "unknown status": ("/v1/jobs", "status=done", "/query/status"),
    "cursor of another's": ("/v1/jobs", "after=abc", "/query/after"),
    "cursor of other values": ("/v1/jobs", "after=WzEsMiwzXQ", "/query/after"),  # [1,2,3]
    "cursor with no date": ("/v1/jobs", "after=WyJ4IiwieSJd", "/query/after"),  # ["x","y"]
    "cursor with NUL": (
        "/v1/jobs",
        "after=WyIyMDI2LTExLTIxVDAwOjAwOjAwKzAwOjAwIiwiXHUwMDAwIl0",  # ["2026-11-21T00:00:00+00:00","\u0000"]
        "/query/after",
    ),
    **{
        f"cursor of {path} with a lone surrogate": (
            path,
            "after=WyIyMDI2LTExLTIxVDAwOjAwOjAwKzAwOjAwIiwiXHVkODAwIl0",  # ["2026-11-21T00:00:00+00:00","\ud800"]
            "/query/after",
        )
        for path in ("/v1/jobs", "/v1/persona-sets", "/v1/question-sets")
    },
    "cursor not in ASCII": ("/v1/jobs", "after=%C3%A9", "/query/after"),
    "long cursor": ("/v1/jobs", "after=" + "A" * 10_000, "/query/after"),
    "response cursor of other values": ("/v1/jobs/{id}/responses", "after=WyJ4IiwieSJd", "/query/after"),
    "response cursor of truths": (
        "/v1/jobs/{id}/responses",
        "after=W3RydWUsZmFsc2UsMF0",  # [true,false,0]
        "/query/after",
    ),
    "response limit": ("/v1/jobs/{id}/responses", "limit=-1", "/query/limit"),
    "out_of_character that is no truth": (
        "/v1/jobs/{id}/responses",
        "out_of_character=maybe",
        "/query/out_of_character",
    ),
    "unknown format": ("/v1/jobs/{id}/report", "format=pdf", "/query/format"),
    "unknown level": ("/v1/jobs/{id}/report", "level=words", "/query/level"),
}


class TestStrangeQueries:
    @pytest.fixture
    def nothing_created(self) -> None:
        """One job there is."""

    @pytest.mark.parametrize(("path", "query", "pointer"), QUERIES.values(), ids=QUERIES)
    def test_the_parameter_is_named(self, api: Service, path: str, query: str, pointer: str) -> None:
        job_id = api.submit(job_body())["id"]
        response = api.get(f"{path.format(id=job_id)}?{query}")
        assert response.status_code == 422, response.text
        assert pointers(response) == [pointer]

    @pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\u00e9"])
    def test_the_idempotency_key_is_named(self, api: Service, key: str) -> None:
        response = api.post("/v1/jobs", job_body(), headers={"Idempotency-Key": key.encode()})
        assert response.status_code == 422
        assert [p.lower() for p in pointers(response)] == ["/header/idempotency-key"]
