"""What the operator allows a tenant holds against each of its keys, an administrator's without any limit included."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from app.cli import app
from app.domain.keys.api_key import Scope
from tests.api.keys import KeyMaker, bearer, guarded_alone
from tests.api.service import Json, Service, job_body, pointers
from tests.databases import Databases

TENANT = "acme"
MOST_JOBS = 20
FAITHFUL, JUDGE, REASONER = (f"simulated/sim-{name}" for name in ("faithful", "judge", "reasoner"))
MADE_UP: Json = {"generate": {"count": 2, "reasoner": REASONER}}
PERSONAGYM = job_body(tasks=["toxicity_control"], reasoner=REASONER, instructions=None)


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with guarded_alone(
        databases, template_database, "tenant_limits", ASSAY_MAX_UNFINISHED_JOBS=str(MOST_JOBS)
    ) as running:
        yield running


@pytest.fixture
def admin(service: Service) -> Iterator[dict[str, str]]:
    """The header of an administrator of the tenant, whose key has no limits."""
    yield bearer(KeyMaker(service.database_url).make(Scope.ADMIN, tenant=TENANT))
    service.empty("tenant_limits", "jobs", "connections")


def assay(service: Service, *arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["tenants", *arguments], env={"DATABASE_URL": service.database_url})
    return done.exit_code, done.stdout, done.stderr


def limit(service: Service, *arguments: str) -> Json:
    status, out, err = assay(service, "limit", TENANT, *arguments, "--json")
    assert status == 0, err
    limits: Json = json.loads(out)
    return limits


def refused(answer: httpx2.Response, *fields: str) -> bool:
    """Whether these fields are, each with the operator as the reason."""
    assert answer.status_code == 422, answer.text
    assert all("for this tenant" in e["message"] for e in answer.json()["errors"])
    return pointers(answer) == list(fields)


class TestModels:
    @pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/plan"])
    def test_others_are_refused_in_every_role(
        self, service: Service, admin: dict[str, str], path: str
    ) -> None:
        limit(service, "--model", FAITHFUL, "--model", JUDGE)
        taken: dict[str, Any] = {"models": [FAITHFUL], "judges": [JUDGE]}
        assert service.post(path, job_body(**taken), headers=admin).is_success
        for changes, *fields in (
            ({"models": [FAITHFUL, "simulated/sim-drifting"]}, "/models/1"),
            ({"models": [{"model": "simulated/sim-drifting", "label": FAITHFUL}]}, "/models/0"),
            ({"models": ["simulated-anthropic/sim-faithful"]}, "/models/0"),
            ({"judges": [JUDGE, "simulated/sim-judge-harsh"]}, "/judges/1"),
        ):
            assert refused(service.post(path, job_body(**taken | changes), headers=admin), *fields), changes
        assert refused(service.post(path, PERSONAGYM, headers=admin), "/reasoner")

    def test_others_are_refused_where_a_model_is_tried_or_makes_up_personas(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        limit(service, "--model", "simulated-anthropic/*")
        for call in (True, False):
            body = {"model": JUDGE, "call": call}
            assert refused(service.post("/v1/models/check", body, headers=admin), "/model")
        assert refused(service.post("/v1/persona-sets", MADE_UP, headers=admin), "/generate/reasoner")
        known = service.get("/v1/models", headers=admin).json()["data"]
        assert [connection["id"] for connection in known] == ["simulated-anthropic"]
        form = service.get("/new", headers=admin).text
        assert '"simulated-anthropic/sim-faithful"' in form
        assert '"simulated/sim-faithful"' not in form

    def test_a_connection_of_its_own_is_no_way_around(self, service: Service, admin: dict[str, str]) -> None:
        limit(service, "--model", "simulated/*", "--model", "lab/allowed")
        url = "https://93.184.215.14"
        for name in ("lab", "simulated2"):
            body = {"name": name, "kind": "openai", "base_url": url}
            assert service.post("/v1/connections", body, headers=admin).status_code == 201
        for name in ("lab/other", "lab/allowed2", "simulated2/sim-faithful", "simulated2/*"):
            plan = service.post("/v1/jobs/plan", job_body(models=[name]), headers=admin)
            assert refused(plan, "/models/0"), name
        plan = service.post("/v1/jobs/plan", job_body(models=["lab/allowed"]), headers=admin)
        assert plan.status_code == 200
        known = service.get("/v1/models", headers=admin).json()["data"]
        assert {each["id"]: each["models"] for each in known}["lab"] == ["allowed"]

    def test_a_job_of_one_that_was_taken_away_is_not_resumed(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        job = service.submit(job_body(judges=[JUDGE], budget={"calls": 9}), headers=admin)["id"]
        assert service.post(f"/v1/jobs/{job}/pause", {}, headers=admin).status_code == 200
        limit(service, "--model", FAITHFUL)
        answer = service.post(f"/v1/jobs/{job}/resume", {}, headers=admin)
        assert (answer.status_code, answer.json()["code"]) == (409, "model_not_allowed")
        assert JUDGE in answer.json()["detail"]
        assert service.post(f"/jobs/{job}/resume", {}, headers=admin).status_code == 409
        limit(service, "--all-models")
        assert service.post(f"/v1/jobs/{job}/resume", {}, headers=admin).status_code == 200

    def test_other_tenants_may_use_all(self, service: Service, admin: dict[str, str]) -> None:
        limit(service, "--model", JUDGE)
        other = bearer(KeyMaker(service.database_url).make(Scope.SUBMIT, tenant="other"))
        assert service.post("/v1/jobs", job_body(), headers=other).status_code == 202
        assert refused(service.post("/v1/jobs", job_body(), headers=admin), "/models/0")


class TestCap:
    def test_nothing_more_is_spent_once_it_is_used_up_whatever_way_it_comes(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        limit(service, "--usd", "1")
        rich = service.post(
            "/v1/api-keys",
            {"name": "rich", "scopes": ["submit"], "spending": {"usd_limit": 99}},
            headers=admin,
        ).json()
        service.execute("UPDATE tenant_limits SET nanos = nanos_limit + 1")
        for headers in (admin, bearer(rich)):
            for path, body in (
                ("/v1/jobs", job_body()),
                ("/v1/persona-sets", MADE_UP),
                ("/v1/models/check", {"model": JUDGE}),
            ):
                answer = service.post(path, body, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (403, "spending_cap_reached"), path
                assert "the tenant's spending cap" in answer.json()["detail"]
        assert service.rows()["jobs"] == 0

    def test_what_was_submitted_before_is_told_and_does_not_go_on(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        job = service.submit(job_body(), headers=admin)["id"]
        status, out, err = assay(service, "limit", TENANT, "--usd", "2.5")
        assert (status, out) == (0, "acme · $0.00 of $2.50 spent · all models\n")
        assert "1 unfinished jobs from before the cap do not count against it: pause or cancel them" in err
        service.post(f"/v1/jobs/{job}/pause", {}, headers=admin)
        for deed in ("resume", "retry"):
            answer = service.post(f"/v1/jobs/{job}/{deed}", {}, headers=admin)
            assert (answer.status_code, answer.json()["code"]) == (403, "not_under_cap")


class TestPause:
    def test_nothing_is_submitted_or_resumed_until_the_tenant_is_resumed(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        running, own = (service.submit(job_body(), headers=admin)["id"] for _ in range(2))
        service.post(f"/v1/jobs/{own}/pause", {}, headers=admin)
        assert assay(service, "pause", TENANT)[:2] == (0, "acme is paused · 1 job stopped\n")
        job = service.get(f"/v1/jobs/{running}", headers=admin).json()
        assert (job["status"], job["status_reason"]) == ("paused", "tenant_paused")
        assert "Ask the operator" in job["error"]["remedy"]
        for path, body in (
            ("/v1/jobs", job_body()),
            ("/v1/persona-sets", MADE_UP),
            ("/v1/models/check", {"model": JUDGE}),
            (f"/v1/jobs/{running}/resume", {}),
            (f"/v1/jobs/{own}/resume", {}),
        ):
            while (answer := service.post(path, body, headers=admin)).status_code == 429:
                time.sleep(int(answer.headers["retry-after"]))  # other tests' checks of models count, too
            assert (answer.status_code, answer.json()["code"]) == (403, "tenant_paused"), path
        assert service.get("/v1/limits", headers=admin).json()["paused"] is True
        other = bearer(KeyMaker(service.database_url).make(Scope.SUBMIT, tenant="other"))
        assert service.post("/v1/jobs", job_body(), headers=other).status_code == 202
        assert assay(service, "list")[1] == "acme · no spending cap · all models · paused\n"
        assert assay(service, "resume", TENANT)[:2] == (0, "acme is not paused · 1 job resumed\n")
        statuses = [
            service.get(f"/v1/jobs/{each}", headers=admin).json()["status"] for each in (running, own)
        ]
        assert statuses == ["queued", "paused"]
        assert service.post(f"/v1/jobs/{own}/resume", {}, headers=admin).status_code == 200


class TestUnfinishedJobs:
    def test_one_more_than_allowed_is_refused_until_one_has_ended(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        with ThreadPoolExecutor(8) as clients:
            answers = list(
                clients.map(
                    lambda _: service.post("/v1/jobs", job_body(), headers=admin), range(MOST_JOBS + 8)
                )
            )
        jobs = [answer.json()["id"] for answer in answers if answer.status_code == 202]
        refused = [answer for answer in answers if answer.status_code != 202]
        assert len(jobs) == MOST_JOBS
        assert {(each.status_code, each.json()["code"]) for each in refused} == {(429, "too_many_jobs")}
        assert all(int(each.headers["retry-after"]) > 0 for each in refused)
        limits = service.get("/v1/limits", headers=admin).json()
        assert limits["unfinished_jobs"] == {"limit": MOST_JOBS, "used": MOST_JOBS}
        assert limits["streams"]["used"] == limits["upload_bytes"]["used"] == 0
        other = bearer(KeyMaker(service.database_url).make(Scope.SUBMIT, tenant="other"))
        assert service.post("/v1/jobs", job_body(), headers=other).status_code == 202
        assert service.post(f"/v1/jobs/{jobs[0]}/cancel", {}, headers=admin).json()["status"] == "cancelled"
        assert service.post("/v1/jobs", job_body(), headers=admin).status_code == 202

    def test_limits_are_shown_by_the_command_line(self, service: Service, admin: dict[str, str]) -> None:
        limit(service, "--usd", "2", "--model", "simulated/*")
        service.submit(job_body(), headers=admin)
        key = admin["Authorization"].removeprefix("Bearer ")
        done = CliRunner().invoke(app, ["limits"], env={"ASSAY_URL": service.url, "ASSAY_API_KEY": key})
        assert done.stdout.splitlines() == [
            "models: simulated/*",
            "spending: $0.00 of $2.00",
            f"unfinished jobs: 1 of {MOST_JOBS}",
            "streams: 0 of 100",
            "upload bytes: 0 of 8,589,934,592",
            "planned calls per job: up to 5,000,000",
        ]


class TestCommands:
    def test_change_what_they_name_and_nothing_else(self, service: Service, admin: dict[str, str]) -> None:
        assert limit(service, "--usd", "2", "--model", "a/b") == {
            "tenant": TENANT,
            "models": ["a/b"],
            "spending": {"usd_limit": 2.0, "usd_spent": 0.0},
            "paused": False,
            "uncapped_jobs": 0,
        }
        assert limit(service)["models"] == ["a/b"]
        assert limit(service, "--no-cap")["spending"] is None
        assert limit(service, "--all-models")["models"] is None
        assert assay(service, "list")[1] == "acme · no spending cap · all models\n"

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--usd", "0"],
            ["--usd", "-1"],
            ["--usd", "1", "--no-cap"],
            ["--model", "openai"],
            ["--model", "/x"],
            ["--model", "a/b", "--all-models"],
        ],
    )
    def test_refuse_what_is_no_limit(self, service: Service, arguments: list[str]) -> None:
        status, _, err = assay(service, "limit", TENANT, *arguments)
        assert status == 3
        assert arguments[0] in err
        assert json.loads(assay(service, "list", "--json")[1]) == {"data": []}
