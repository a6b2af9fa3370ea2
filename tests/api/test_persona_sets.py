"""Persona sets through the API: brought along in each form, and everything that can be wrong with them."""

import json
from typing import Any

import httpx2
import pytest

from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_personagym import gym_body

CRITIC = {"id": "persona-1", "description": "a blunt critic", "traits": {}}
KIND = {"id": "kind", "description": "a kind critic", "traits": {"A": "high"}}
SENT: list[Any] = ["a blunt critic", KIND]
CSV = "text/csv; charset=utf-8"
JSONL = "application/jsonl"
PATH = "/v1/persona-sets"


def kept(api: Service, personas: object, **body: object) -> Json:
    answer = api.post(PATH, {"personas": personas, **body})
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    return found


class TestKeeping:
    def test_the_same_personas_are_the_same_set_whatever_their_form(self, api: Service) -> None:
        first = api.post(PATH, {"name": "critics", "personas": SENT})
        lines = "\n".join(json.dumps(one) for one in SENT)
        table = "\ufeffdescription,id,traits\r\na blunt critic,,\r\na kind critic,kind,A=high\r\n"
        others = [
            api.post(PATH, SENT),
            api.post(
                PATH,
                {
                    "personas": {
                        "persona-1": "a blunt critic",
                        "kind": {k: KIND[k] for k in ("description", "traits")},
                    }
                },
            ),
            api.send(f"{PATH}?name=other", lines.encode(), JSONL),
            api.send(PATH, lines.encode(), "application/x-ndjson"),
            api.send(PATH, table.encode(), CSV),
        ]
        assert {answer.status_code for answer in (first, *others)} == {201}
        assert first.json() == {
            "id": first.json()["id"],
            "object": "persona_set",
            "name": "critics",
            "built_in": False,
            "diversity": None,
            "personas": [CRITIC, KIND],
        }
        assert [answer.json() for answer in others] == [first.json()] * len(others)
        assert api.get(first.headers["Location"]).json() == first.json()

    def test_another_order_is_another_set(self, api: Service) -> None:
        assert kept(api, [CRITIC, KIND])["id"] != kept(api, [KIND, CRITIC])["id"]

    def test_a_built_in_persona_goes_in_by_its_id(self, api: Service) -> None:
        (nun,) = kept(api, ["gym-13"])["personas"]
        assert nun == {"id": "gym-13", "description": "A homosexual Black Atheist woman", "traits": {}}

    def test_what_looks_like_a_formula_stays_what_it_is(self, api: Service) -> None:
        answer = api.send(PATH, b'description\n"=HYPERLINK(""x"")"\n', CSV)
        assert answer.json()["personas"][0]["description"] == '=HYPERLINK("x")'

    def test_the_printed_personas_are_a_built_in_set(self, api: Service) -> None:
        found = api.get(f"{PATH}/personagym-50").json()
        assert (found["built_in"], len(found["personas"])) == (True, 50)
        again = kept(api, found["personas"])
        assert api.post("/v1/jobs/plan", gym_body(personas=[again["id"]])).json()["persona_scores"] == 50

    @pytest.mark.parametrize("name", [f"pset_{'0' * 32}", "nothing", "a%00b", "%ED%A0%80", "x" * 200])
    def test_one_that_there_is_not_is_not_found(self, api: Service, name: str) -> None:
        assert api.get(f"{PATH}/{name}").status_code == 404


class TestList:
    def test_sets_come_newest_first_page_by_page(self, api: Service) -> None:
        ids = [kept(api, [f"critic number {n}", "another"], name=f"set {n}")["id"] for n in range(5)]
        listed = [one for one in api.walk(PATH, limit=2) if one["id"] in ids]
        assert [one["id"] for one in listed] == ids[::-1]
        assert listed[0]["name"] == "set 4"
        assert {one["personas"] for one in listed} == {2}

    @pytest.mark.parametrize("path", [PATH, "/v1/question-sets"])
    def test_wrong_parameters_are_named(self, api: Service, path: str) -> None:
        assert pointers(api.get(path, params={"after": "x"})) == ["/query/after"]
        assert pointers(api.get(path, params={"limit": "0"})) == ["/query/limit"]
        assert pointers(api.get(path, params={"name": "x"})) == ["/query/name"]


class TestInJobs:
    def test_a_set_stands_for_its_personas(self, api: Service) -> None:
        id_ = kept(api, SENT)["id"]
        plan = api.post("/v1/jobs/plan", gym_body(personas=["gym-01", id_]))
        assert plan.json()["persona_scores"] == 3
        assert api.submit(gym_body(personas=[id_]))["spec"]["personas"] == [id_]

    def test_traits_are_measured_by_atomic_tasks(self, api: Service) -> None:
        id_ = kept(api, [KIND])["id"]
        assert api.post("/v1/jobs/plan", job_body(personas=[id_])).json()["cells"] == 1

    @pytest.mark.parametrize(
        ("personas", "changes", "pointer"),
        [
            ([{"description": "x", "traits": {"E": "hgih"}}], {}, "/personas/0"),
            ([{"description": "x", "traits": {"politics": "left"}}], {}, "/personas/0"),
            (["a critic without traits"], {"tasks": ["essay"], "reasoner": None}, "/personas/0"),
        ],
    )
    def test_what_does_not_fit_the_job_is_told_of_the_set(
        self, api: Service, personas: object, changes: Json, pointer: str
    ) -> None:
        id_ = kept(api, personas)["id"]
        answer = api.post("/v1/jobs/plan", gym_body(personas=[id_], **changes))
        assert (answer.status_code, pointers(answer)) == (422, [pointer])

    def test_an_unknown_or_repeated_one_is_named(self, api: Service) -> None:
        id_ = kept(api, SENT)["id"]
        unknown = api.post("/v1/jobs/plan", gym_body(personas=["gym-01", f"pset_{'0' * 32}"]))
        assert (unknown.status_code, pointers(unknown)) == (422, ["/personas/1"])
        twice = api.post("/v1/jobs/plan", gym_body(personas=[id_, id_]))
        assert (twice.status_code, pointers(twice)) == (422, ["/personas/1"])

    def test_sets_that_share_ids_are_both_named(self, api: Service) -> None:
        ids = [kept(api, [f"a critic of {what}", f"a lover of {what}"])["id"] for what in ("wine", "cars")]
        answer = api.post("/v1/jobs/plan", gym_body(personas=["gym-01", *ids]))
        assert (answer.status_code, pointers(answer)) == (422, ["/personas/2"])
        (error,) = answer.json()["errors"]
        assert "'persona-1' is given more than once, first by /personas/1 (and 1 more)" in error["message"]

    def test_ten_thousand_personas_are_kept_and_more_in_one_job_are_too_many(self, api: Service) -> None:
        crowd = [f"citizen number {n} of a large town" for n in range(10_000)]
        id_ = kept(api, crowd)["id"]
        answer = api.post("/v1/jobs/plan", gym_body(personas=[id_, "gym-01"]))
        assert (answer.status_code, pointers(answer)) == (422, ["/personas"])
        assert pointers(api.post(PATH, {"personas": [*crowd, "one more"]})) == ["/personas"]


class TestBadInput:
    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({}, ""),
            ({"personas": None}, ""),
            ({"personas": ["a"], "generate": {"count": 1, "reasoner": "simulated/sim-reasoner"}}, ""),
            ({"personas": []}, "/personas"),
            ({"personas": 3}, "/personas"),
            ({"personas": "personagym-50"}, "/personas"),
            ({"personas": ["a", 3]}, "/personas/1"),
            ({"personas": ["a", " "]}, "/personas/1/description"),
            ({"personas": ["a\u0000"]}, "/personas/0/description"),
            ({"personas": ["gym-01", "personagym-50"]}, "/personas/1"),
            ({"personas": [f"pset_{'0' * 32}"]}, "/personas/0"),
            ({"personas": [{"id": "gym-01", "description": "x"}]}, "/personas/0/id"),
            ({"personas": [{"id": "big-five", "description": "x"}]}, "/personas/0/id"),
            ({"personas": [{"id": "a", "description": "x"}, {"id": "a", "description": "y"}]}, "/personas/1/id"),
            ({"personas": {"a b": "x"}}, "/personas/a b"),
            ({"personas": [{"id": "persona-2", "description": "x"}, "y"]}, "/personas/1"),
            ([{"description": "x", "age": 3}], "/0/age"),
            (["a", {"description": " "}], "/1/description"),
            ([], ""),
            ({"personas": ["a"], "name": "x\ny"}, "/name"),
            ({"personas": ["a"], "note": 1}, "/note"),
            ({"generate": {"reasoner": "simulated/sim-reasoner"}}, "/generate/count"),
            ({"generate": {"count": 0, "reasoner": "simulated/sim-reasoner"}}, "/generate/count"),
            ({"generate": {"count": 1001, "reasoner": "simulated/sim-reasoner"}}, "/generate/count"),
            ({"generate": {"count": 5}}, "/generate/reasoner"),
            ({"generate": {"count": 5, "reasoner": "nowhere/x"}}, "/generate/reasoner"),
            ({"generate": {"count": 5, "reasoner": {"model": "simulated/x", "temperature": 3}}}, "/generate/reasoner/temperature"),
            (3, ""),
        ],
    )  # fmt: skip
    def test_json_that_is_wrong_is_named(self, api: Service, body: object, pointer: str) -> None:
        answer = api.post(PATH, body)
        assert (answer.status_code, pointers(answer)) == (422, [pointer])

    @pytest.mark.parametrize(
        ("text", "content_type", "pointer"),
        [
            (b"", CSV, ""),
            (b"\xef\xbb\xbf", CSV, ""),
            (b"description\r\n", CSV, ""),
            (b"name\na\n", CSV, "/lines/1"),
            (b"description,id\na,x\nb,x\n", CSV, "/lines/3/id"),
            (b"description\na\0b\n", CSV, "/lines/2/description"),
            (b'description\n"a', CSV, "/lines/2"),
            (b"description\n" + b"x" * 140_000, CSV, "/lines/2/description"),
            (b"description,id\na,gym-01\n", CSV, "/lines/2/id"),
            (b"", JSONL, ""),
            (b'"a"\n{"x"', JSONL, "/lines/2"),
            (b'"a\\ud800"', JSONL, "/lines/1/description"),
            (b'{"description": "a", "\\ud800": 1}', JSONL, "/lines/1/?"),
            (b"[" * 100_000, JSONL, "/lines/1"),
            (b'{"description": "a", "traits": {"E": NaN}}', JSONL, "/lines/1/traits"),
        ],
    )
    def test_files_that_are_wrong_are_named_by_line(
        self, api: Service, text: bytes, content_type: str, pointer: str
    ) -> None:
        answer = api.send(PATH, text, content_type)
        assert answer.status_code == 422, answer.text
        assert pointers(answer) == [pointer]

    @pytest.mark.parametrize(
        ("body", "content_type", "status"),
        [
            (b"{", "application/json", 400),
            (b'{"personas": ["a"], "personas": ["b"]}', "application/json", 400),
            (b'{"personas": ["\\ud800"]}', "application/json", 400),
            (b"description\na", "text/plain", 415),
            (b"description\na", "", 415),
            (b"description\na", "text/csv; charset=iso-8859-1", 415),
            (b"description\n\xff", CSV, 400),
            (b"\xff\xfed\x00", JSONL, 400),
            (b"x" * (9 * 1024 * 1024), CSV, 413),
        ],
    )  # fmt: skip
    def test_bodies_that_are_none_are_refused(
        self, api: Service, body: bytes, content_type: str, status: int
    ) -> None:
        assert api.send(PATH, body, content_type).status_code == status

    def test_a_json_bodys_name_is_in_it(self, api: Service) -> None:
        answer: httpx2.Response = api.post(f"{PATH}?name=x", {"personas": ["a"]})
        assert (answer.status_code, pointers(answer)) == (422, ["/query/name"])

    def test_a_name_repeated_at_the_end_of_a_large_object_is_found_at_once(self, api: Service) -> None:
        members = ",".join(f'"{n}":"x"' for n in range(300_000))
        assert api.send(PATH, f'{{"personas":{{{members},"7":"y"}}}}'.encode()).status_code == 400
        assert api.send(PATH, f'{{{members},"7":"y"}}'.encode(), JSONL).status_code == 422


class TestGeneration:
    def test_it_is_a_job_that_is_accepted_once_for_one_key(self, api: Service) -> None:
        body = {"name": "crowd", "generate": {"count": 7, "reasoner": "simulated/sim-reasoner"}}
        answer = api.post(PATH, body, headers={"Idempotency-Key": "people"})
        job = answer.json()
        assert (answer.status_code, answer.headers["Location"]) == (202, f"/v1/jobs/{job['id']}")
        assert job["progress"] == {
            "personas": {
                "total": 7, "pending": 7, "running": 0, "succeeded": 0, "failed": 0, "estimated": False,
            }
        }  # fmt: skip
        assert (job["name"], job["simulated"], job["spec"]) == ("crowd", True, body)
        assert "persona_set" not in job["links"]
        again = api.post(PATH, body, headers={"Idempotency-Key": "people"})
        assert again.json()["id"] == job["id"]
        body["name"] = "others"
        assert api.post(PATH, body, headers={"Idempotency-Key": "people"}).status_code == 422

    def test_a_finished_one_leads_to_a_set_that_a_job_can_name(self, stack: Service) -> None:
        body = {"name": "crowd", "generate": {"count": 40, "reasoner": "simulated/sim-reasoner"}}
        job = stack.wait(stack.post(PATH, body).json()["id"], "completed", "failed")
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert job["progress"]["personas"]["succeeded"] == 40
        made = stack.get(job["links"]["persona_set"]).json()
        assert (made["name"], len(made["personas"])) == ("crowd", 40)
        assert made["diversity"]["pairs"] == 40 * 39 // 2
        assert 0 < made["diversity"]["mean_attributes"] < made["diversity"]["highest_attributes"] < 0.5
        results = stack.get(job["links"]["results"]).json()
        found = results["persona_set"]
        assert (found["id"], found["wanted"], found["found"]) == (made["id"], 40, 40)
        assert found["asks"] > 2
        assert found["dropped"]["alike"] > 0
        assert job["usage"]["calls"] == found["asks"]
        assert results["manifest"]["persona_generation"]["count"] == 40
        for query in ({"format": "html"}, {"format": "csv"}, {"format": "parquet", "level": "cells"}):
            assert stack.get(f"/v1/jobs/{job['id']}/report", params=query).status_code == 200
        page = stack.get(f"/v1/jobs/{job['id']}/report", params={"format": "html"}).text
        assert f'/v1/persona-sets/{made["id"]}">see it as JSON</a>' in page
        assert stack.get(f"/v1/jobs/{job['id']}/responses").json()["data"] == []
        plan = stack.post("/v1/jobs/plan", gym_body(personas=[made["id"]]))
        assert plan.json()["persona_scores"] == 40
