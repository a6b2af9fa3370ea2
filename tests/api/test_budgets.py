"""Budgets and priorities as a client sees them; what a job spends is tested with workers."""

from typing import Any

import pytest

from tests.api.service import Json, Service, job_body, pointers

LIMITS: Json = {"usd": 25, "calls": 100, "tokens": 5000}


class TestSubmit:
    def test_the_job_shows_its_limits_and_what_is_left(self, api: Service) -> None:
        job = api.submit(job_body(budget=LIMITS))
        assert job["budget"] == {
            name: {"limit": limit, "spent": 0, "reserved": 0, "remaining": limit}
            for name, limit in LIMITS.items()
        }
        assert job["spec"]["budget"] == LIMITS

    def test_limits_that_were_not_given_are_not_shown(self, api: Service) -> None:
        job = api.submit(job_body(budget={"usd": 0.25}))
        assert job["budget"] == {"usd": {"limit": 0.25, "spent": 0, "reserved": 0, "remaining": 0.25}}

    def test_without_one_there_is_none(self, api: Service) -> None:
        assert api.submit(job_body())["budget"] is None

    @pytest.mark.parametrize(
        ("budget", "pointer"),
        [
            ({}, "/budget"),
            ({"usd": None}, "/budget"),
            ({"usd": 0}, "/budget/usd"),
            ({"usd": -1}, "/budget/usd"),
            ({"usd": 1e300}, "/budget/usd"),
            ({"usd": "25"}, "/budget/usd"),
            ({"calls": 0}, "/budget/calls"),
            ({"calls": 1.5}, "/budget/calls"),
            ({"tokens": 2**63}, "/budget/tokens"),
            ({"euro": 3}, "/budget/euro"),
            (25, "/budget"),
        ],
    )
    def test_a_limit_that_is_none_is_refused(self, api: Service, budget: Any, pointer: str) -> None:
        response = api.post("/v1/jobs", job_body(budget=budget))
        assert response.status_code == 422
        assert pointers(response) == [pointer]

    def test_money_without_a_known_price_is_refused_and_the_models_are_named(self, api: Service) -> None:
        body = job_body(models=["acme/acme-1"], judges=["acme/acme-judge"])
        response = api.post("/v1/jobs", body | {"budget": {"usd": 5}})
        assert response.status_code == 422
        assert pointers(response) == ["/budget/usd"]
        assert "acme/acme-judge" in response.json()["errors"][0]["message"]
        assert "acme/acme-1" not in response.json()["errors"][0]["message"]
        assert api.submit(body | {"budget": {"calls": 5}})["budget"]["calls"]["limit"] == 5

    def test_priorities_are_shown(self, api: Service) -> None:
        assert api.submit(job_body())["priority"] == "normal"
        assert api.submit(job_body(priority="high"))["priority"] == "high"
        assert pointers(api.post("/v1/jobs", job_body(priority="urgent"))) == ["/priority"]


class TestPlan:
    def test_it_warns_of_a_budget_that_the_estimate_exceeds(self, api: Service) -> None:
        body = job_body(models=["acme/acme-1"], judges=["acme/acme-1"])
        warnings = api.post(
            "/v1/jobs/plan", body | {"budget": {"usd": 1e-6, "calls": 1, "tokens": 1}}
        ).json()["warnings"]
        assert sum("more than its budget" in warning for warning in warnings) == 3
        ample = api.post("/v1/jobs/plan", body | {"budget": {"usd": 1e6, "calls": 10**6}}).json()["warnings"]
        assert not any("more than its budget" in warning for warning in ample)


class TestChange:
    def test_a_limit_is_replaced_and_the_others_stay(self, api: Service) -> None:
        path = f"/v1/jobs/{api.submit(job_body(budget=LIMITS))['id']}"
        changed = api.http.patch(path, json={"budget": {"usd": 40}})
        assert changed.status_code == 200
        assert {name: part["limit"] for name, part in changed.json()["budget"].items()} == LIMITS | {
            "usd": 40
        }
        assert api.http.patch(path, json={"budget": {"usd": 40}}).json() == changed.json()

    def test_a_limit_that_the_job_has_not_is_refused_and_nothing_is_changed(self, api: Service) -> None:
        job = api.submit(job_body(budget={"calls": 3}))
        response = api.http.patch(f"/v1/jobs/{job['id']}", json={"budget": {"usd": 40, "calls": 9}})
        assert response.status_code == 422
        assert pointers(response) == ["/budget/usd"]
        assert api.job(job["id"])["budget"] == job["budget"]

    def test_a_job_without_a_budget_gets_none(self, api: Service) -> None:
        path = f"/v1/jobs/{api.submit(job_body())['id']}"
        assert api.http.patch(path, json={"budget": {"usd": 40}}).status_code == 409

    @pytest.mark.parametrize("body", [{}, {"budget": None}, {"budget": {}}, {"nane": "x"}, []])
    def test_a_change_of_nothing_is_refused(self, api: Service, body: Any) -> None:
        path = f"/v1/jobs/{api.submit(job_body(budget=LIMITS))['id']}"
        assert api.http.patch(path, json=body).status_code == 422

    def test_an_unknown_job_is_not_found(self, api: Service) -> None:
        path = f"/v1/jobs/job_{'0' * 26}"
        assert api.http.patch(path, json={"budget": {"usd": 40}}).status_code == 404


class TestRetry:
    def test_what_is_at_work_or_went_well_stays_as_it_is(self, api: Service) -> None:
        job = api.submit(job_body())
        again = api.post(f"/v1/jobs/{job['id']}/retry")
        assert (again.status_code, again.json()) == (200, job)
        api.execute("UPDATE shards SET done = true")
        api.execute("UPDATE jobs SET status = 'completed', finished_at = now()")
        assert api.post(f"/v1/jobs/{job['id']}/retry").json()["status"] == "completed"

    @pytest.mark.parametrize("status", ["cancelling", "cancelled", "finalizing"])
    def test_what_is_ending_or_cancelled_is_a_conflict(self, api: Service, status: str) -> None:
        job = api.submit(job_body())
        api.execute("UPDATE jobs SET status = %s", status)
        response = api.post(f"/v1/jobs/{job['id']}/retry")
        assert response.status_code == 409
        assert status in response.json()["detail"]

    def test_an_unknown_job_is_not_found(self, api: Service) -> None:
        assert api.post(f"/v1/jobs/job_{'0' * 26}/retry").status_code == 404
