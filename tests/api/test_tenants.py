"""Two tenants at one service: what one of them has, the other one cannot name or notice. Each route by itself is in `test_access.py`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest

from embedded.valkey import EmbeddedValkey
from tests.api.keys import bearer, guarded
from tests.api.service import Json, Service, job_body
from tests.api.test_access import OURS, ROUTES, World, all_keys, our_things
from tests.conftest import scratch_directory
from tests.databases import Databases

PERSONAS = [{"description": OURS}]
QUESTIONS = {OURS: {"expected_action": ["What now?"]}}


@dataclass(frozen=True, slots=True)
class Two:
    """A service, one of whose tenants has a thing of each kind, among them a response."""

    world: World
    response: str

    def send(self, whose: str, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = bearer(self.world.keys[whose]) | options.pop("headers", {})
        return self.world.service.http.request(method, path, headers=headers, **options)


@pytest.fixture(scope="module", params=["with the wall", "without the wall"])
def two(request: pytest.FixtureRequest, databases: Databases, template_database: str) -> Iterator[Two]:
    """Behind both walls, and behind the first one alone: as the superuser, whom row-level security does not concern."""
    walled = request.param == "with the wall"
    with (
        databases.new("tenants", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        guarded(
            directory,
            url if walled else url.replace("assay@", "postgres@"),
            valkey.url(),
            ASSAY_WEBHOOK_HOSTS="127.0.0.1:9",
        ) as service,
    ):
        assert service.get("/readyz").json()["parts"]["row_level_security"] == ("ok" if walled else "off")
        service.http.event_hooks = {"response": []}  # what is a page has no problem in JSON
        keys = all_keys(service)
        names = our_things(service, keys)
        yield Two(World(service, names, keys), response_of(service, keys))


def response_of(service: Service, keys: dict[str, Json]) -> str:
    """The id of one that a job has brought along."""
    text = {"persona": "E-low", "task": "essay", "model": "ours", "text": f"This is {OURS}. And so is this."}
    headers = bearer(keys["admin"])
    job = service.submit(
        job_body(models=None, instructions=None, iterations=None, responses=[text]), headers=headers
    )
    answer = service.get(f"/v1/jobs/{job['id']}/responses", headers=headers)
    return str(answer.json()["data"][0]["id"])


def other_than(id_: str) -> str:
    """An id of the same form that nothing has."""
    head, tail = id_[:12], id_[12:]  # within what is drawn by chance, or hashed
    return head + ("1" if tail[0] == "0" else "0") + tail[1:]


def told(answer: httpx2.Response, *ids: str) -> object:
    """What an answer says, but for the id that was asked for and the request's own."""
    text = answer.text.replace(answer.headers["x-request-id"], "REQUEST")
    for id_ in ids:
        text = text.replace(id_, "ID")
    return answer.status_code, answer.headers["content-type"], text


class TestAnotherTenantsId:
    def test_is_answered_in_the_words_of_one_that_there_is_not(self, two: Two) -> None:
        world, key = two.world, bearer(two.world.keys["other"])
        nobodys = {
            name: other_than(id_) if name.endswith(("_id", "_set")) else id_
            for name, id_ in world.names.items()
        }
        ids = [*world.names.values(), *nobodys.values()]
        ids = [id_ for id_ in ids if "_" in id_]
        asked = [route for route in ROUTES if "{" in route.path]
        assert len(asked) > 30
        for route in asked:
            theirs, unknown = world.ask(route, key), replace(world, names=nobodys).ask(route, key)
            assert theirs.status_code == 404, route
            assert told(theirs, *ids) == told(unknown, *ids), route

    def test_is_so_in_bodies_and_queries_too(self, two: Two) -> None:
        names = two.world.names
        job, side = names["job_id"], {"job": names["job_id"], "model": "simulated/sim-faithful"}
        annotation = {"annotator": "bert", "response": two.response, "unit": 0, "dimension": "E", "score": 2}
        for id_, method, path, options in (
            (job, "POST", "/v1/comparisons", {"json": {"a": side, "b": side}}),
            (job, "POST", "/v1/comparisons", {"json": {"models": [{"job": job}]}}),
            (job, "GET", "/compare", {"params": {"a": job, "b": job}}),
            (job, "GET", "/compare", {"params": {"model": job}}),
            (
                job,
                "POST",
                "/v1/labelling-rounds",
                {"json": {"job": job, "kind": "sentences", "dimension": "E"}},
            ),
            (job, "POST", "/v1/schedules", {"json": {"cron": "0 0 1 1 *", "clone": job}}),
            (
                job,
                "POST",
                "/v1/schedules",
                {"json": {"cron": "0 0 1 1 *", "job": job_body(), "anchors": {"job": job}}},
            ),
            (two.response, "POST", "/v1/annotations", {"json": {"annotations": [annotation]}}),
            (names["set_id"], "POST", "/v1/jobs/plan", {"json": job_body(personas=[names["set_id"]])}),
            (names["question_set"], "POST", "/v1/jobs/plan", {"json": asking(names["question_set"])}),
            (
                job,
                "POST",
                "/v1/jobs/plan",
                {"json": {"responses": {"job": job}, "judges": ["simulated/sim-judge"]}},
            ),
            (job, "POST", "/v1/bridges", {"json": {"old": {"job": job}, "new": {"job": job}}}),
            (names["rubric_set"], "POST", "/v1/jobs/plan", {"json": grading(names["rubric_set"])}),
        ):
            theirs = two.send("other", method, path, **options)
            renamed = json.loads(json.dumps(options).replace(id_, other_than(id_)))
            unknown = two.send("other", method, path, **renamed)
            assert told(theirs, id_, other_than(id_)) == told(unknown, id_, other_than(id_)), path
            assert OURS not in theirs.text
            ours = two.send("admin", method, path, **options)
            assert told(ours, id_) != told(theirs, id_), path


def asking(questions: str) -> Json:
    return job_body(
        personas=[{"id": "ours", "description": OURS}],
        tasks=["expected_action"],
        instructions=None,
        questions=questions,
        reasoner="simulated/sim-reasoner",
    )


def grading(rubrics: str) -> Json:
    return asking("") | {"tasks": ["toxicity_control"], "questions": None, "rubrics": rubrics}


class TestLists:
    def test_and_pages_have_nothing_of_anybody_elses(self, two: Two) -> None:
        for path in ("jobs", "schedules", "webhooks", "question-sets", "persona-sets", "rubric-sets"):
            assert two.send("admin", "GET", f"/v1/{path}").json()["data"], path
            assert two.send("other", "GET", f"/v1/{path}").json()["data"] == [], path
        keys = two.send("other", "GET", "/v1/api-keys").json()["data"]
        assert [key["id"] for key in keys] == [two.world.keys["other"]["id"]]
        for path in ("/", "/compare", "/new"):
            shown = two.send("other", "GET", path).text
            assert [
                name for name in (OURS, two.world.names["job_id"], two.world.names["set_id"]) if name in shown
            ] == []
        assert two.world.names["job_id"] in two.send("admin", "GET", "/").text

    def test_so_have_files(self, two: Two) -> None:
        said = {"annotator": "anna", "response": two.response, "unit": 0, "dimension": "E", "score": 2}
        assert two.send("admin", "POST", "/v1/annotations", json={"annotations": [said]}).status_code == 200
        ours, theirs = (
            two.send(whose, "GET", "/v1/annotations", params={"format": "csv"}).text.splitlines()
            for whose in ("admin", "other")
        )
        assert any("anna" in line for line in ours)
        assert theirs == ours[:1]


class TestTheSame:
    """After the others, for now both have something."""

    def test_idempotency_key_is_each_tenants_own(self, two: Two) -> None:
        key = {"Idempotency-Key": "the-same"}
        answers = [
            two.send(whose, "POST", "/v1/jobs", json=job_body(), headers=key)
            for whose in ("admin", "other", "other", "admin")
        ]
        assert [answer.status_code for answer in answers] == [202] * 4
        ours, theirs, theirs_again, ours_again = (answer.json()["id"] for answer in answers)
        assert (ours, theirs) == (ours_again, theirs_again)
        assert ours != theirs

    @pytest.mark.parametrize(
        ("path", "name", "body"),
        [
            ("/v1/persona-sets", "set_id", {"personas": PERSONAS}),
            ("/v1/question-sets", "question_set", {"questions": QUESTIONS}),
        ],
    )
    def test_content_of_a_set_tells_nothing_of_the_other_one(
        self, two: Two, path: str, name: str, body: Json
    ) -> None:
        unheard_of = json.loads(json.dumps(body).replace(OURS, "what nobody has"))
        kept, new = (
            two.send("other", "POST", path, json=body),
            two.send("other", "POST", path, json=unheard_of),
        )
        assert kept.json()["id"] == two.world.names[name]
        assert kept.status_code == new.status_code
        assert [each["id"] for each in two.send("admin", "GET", path).json()["data"]] == [
            two.world.names[name]
        ]

    def test_event_is_told_to_the_webhooks_of_each_one_alone(self, two: Two) -> None:
        hook = {"url": "http://127.0.0.1:9/", "events": ["job.paused"]}
        hooks = {
            whose: two.send(whose, "POST", "/v1/webhooks", json=hook).json()["id"]
            for whose in ("admin", "other")
        }
        for whose in hooks:
            job = two.send(whose, "POST", "/v1/jobs", json=job_body()).json()["id"]
            assert two.send(whose, "POST", f"/v1/jobs/{job}/pause").status_code == 200
            told = "SELECT count(*) FROM webhook_deliveries WHERE webhook_id = '{}' AND job_id = '{}'"
            counted = {name: two.world.service.count(told.format(id_, job)) for name, id_ in hooks.items()}
            assert counted == {name: int(name == whose) for name in hooks}

    def test_gate_names_nobody_elses_job(self, two: Two) -> None:
        own = two.send("other", "POST", "/v1/jobs", json=job_body()).json()["id"]
        theirs = two.world.names["job_id"]

        def held_to(id_: str, whose: str, job: str) -> httpx2.Response:
            wanted = {"threshold": f"acc_atom not worse than {id_} by 0.1"}
            return two.send(whose, "GET", f"/v1/jobs/{job}/gate", params=wanted)

        unknown = other_than(theirs)
        refused, missing = held_to(theirs, "other", own), held_to(unknown, "other", own)
        assert refused.status_code == 404
        assert told(refused, theirs, unknown) == told(missing, theirs, unknown)
        assert held_to(theirs, "admin", theirs).status_code == 200
