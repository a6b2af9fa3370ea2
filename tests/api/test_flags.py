"""Flags on sentences and responses: set, replaced, listed, removed, shown in the console, and kept out of every figure."""

import html
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.api.service import Json, Service, job_body, pointers


@pytest.fixture(scope="module")
def job(stack: Service) -> Json:
    return stack.wait(stack.submit(job_body())["id"], "completed")


@pytest.fixture(scope="module")
def response(stack: Service, job: Json) -> Json:
    found: Json = stack.get(f"/v1/jobs/{job['id']}/responses").json()["data"][0]
    assert found["units"]
    return found | {"job": job["id"]}


@pytest.fixture
def service(stack: Service) -> Iterator[Service]:
    yield stack
    stack.empty("flags")


def flag(service: Service, flagged: Json, **body: object) -> Any:
    return service.post("/v1/flags", {"annotator": "anna", "response": flagged["id"]} | body)


def shown(service: Service, response: Json, unit: int = 0) -> str:
    found = service.get(f"/jobs/{response['job']}/responses/{response['id']}/judging?unit={unit}")
    return html.unescape(found.text)


def page_of(service: Service, job: Json, **query: str) -> str:
    return html.unescape(service.get(f"/jobs/{job['id']}/responses", params=query).text)


class TestFlags:
    def test_a_flag_is_replaced_listed_and_removed(self, service: Service, job: Json, response: Json) -> None:
        first = flag(service, response, unit=0, note="wrong")
        assert first.status_code == 200, first.text
        again = flag(service, response, unit=0, score=1).json()
        assert (again["id"], again["score"], again["note"]) == (first.json()["id"], 1, None)
        assert again["dimension"] == "E"
        whole = flag(service, response, score="not_applicable").json()
        assert (whole["unit"], whole["score"]) == (None, "not_applicable")
        other = flag(service, response, unit=0, annotator="ben").json()
        walked = service.walk("/v1/flags", job=job["id"], limit=1)
        assert [each["id"] for each in walked] == [other["id"], whole["id"], again["id"]]
        removed = service.http.delete(f"/v1/flags/{whole['id']}")
        assert removed.json() == whole
        assert service.http.delete(f"/v1/flags/{whole['id']}").status_code == 404
        assert service.count("SELECT count(*) FROM flags") == 2

    def test_flags_count_in_no_agreement(self, service: Service, job: Json, response: Json) -> None:
        path = f"/v1/jobs/{job['id']}/results"
        before = service.get(path).json()
        assert flag(service, response, unit=0, score=5).status_code == 200
        assert service.get(path).json() == before
        assert service.get("/v1/annotations", params={"job": job["id"]}).json()["data"] == []

    def test_flagged_responses_are_found(self, service: Service, job: Json, response: Json) -> None:
        path = f"/v1/jobs/{job['id']}/responses"
        assert list(service.walk(path, flagged="true")) == []
        flag(service, response, unit=0)
        assert [each["id"] for each in service.walk(path, flagged="true")] == [response["id"]]
        assert [each["id"] for each in service.walk(path, flagged="true", sort="score")] == [response["id"]]

    @pytest.mark.parametrize(
        ("body", "wrong"),
        [
            ({"unit": 30_000}, "/unit"),
            ({"unit": 0, "score": 9}, "/score"),
            ({"unit": 0, "score": 3, "dimension": "A"}, "/dimension"),
            ({"unit": 0, "dimension": "A"}, "/dimension"),
            ({"annotator": "=cmd"}, "/annotator"),
            ({"response": "resp_x"}, "/response"),
            ({"note": "x" * 2001}, "/note"),
            ({"note": "\x00"}, "/note"),
            ({"flag": True}, "/flag"),
        ],
    )
    def test_what_does_not_fit_is_told_by_field(
        self, service: Service, response: Json, body: Json, wrong: str
    ) -> None:
        refused = flag(service, response, **body)
        assert refused.status_code == 422
        assert pointers(refused) == [wrong]

    def test_another_job_is_not_found(self, service: Service, response: Json) -> None:
        for absent in (f"resp_{'0' * 26}-0-0-0", f"{response['id']}9"):
            assert pointers(flag(service, {"id": absent})) == ["/response"]
        assert service.http.delete(f"/v1/flags/flag_{'0' * 26}").status_code == 404
        assert service.http.delete("/v1/flags/none").status_code == 404


class TestPages:
    def send(self, service: Service, response: Json, path: str = "flag", **form: str) -> Any:
        return httpx2.post(
            f"{service.url}/jobs/{response['job']}/responses/{response['id']}/{path}",
            data=form,
            headers={"origin": service.url},
            trust_env=False,
        )

    def test_a_sentence_is_flagged_and_the_flag_removed(
        self, service: Service, job: Json, response: Json
    ) -> None:
        sent = self.send(service, response, unit="0", annotator="anna", score="E 2", note="<b>ironic</b>")
        assert sent.status_code == 303
        assert sent.headers["location"].endswith("/judging?unit=0")
        found = shown(service, response)
        assert "Flagged by" in found
        assert "should be <strong>2</strong>" in found
        assert "<b>ironic" not in service.get(sent.headers["location"]).text
        assert "Flagged by" not in shown(service, response, 1)
        assert response["id"] in page_of(service, job, flagged="true")
        assert "Flagged by" in page_of(service, job)
        (kept,) = service.walk("/v1/flags")
        assert self.send(service, response, f"flags/{kept['id']}/remove").status_code == 303
        assert "Flagged by" not in page_of(service, job)
        assert "No responses match" in page_of(service, job, flagged="true")

    def test_what_was_typed_stays_beside_the_error(self, service: Service, response: Json) -> None:
        sent = self.send(service, response, unit="0", annotator="", score="E not_applicable", note="odd")
        assert sent.status_code == 422
        assert "Your name" in sent.text
        assert 'value="odd"' in sent.text
        assert self.send(service, response, unit="x", annotator="a").status_code == 422
        assert self.send(service, response, unit="99999", annotator="a").status_code == 422
        assert self.send(service, response, unit="", annotator="a", score="q").status_code == 422
        assert service.count("SELECT count(*) FROM flags") == 0
