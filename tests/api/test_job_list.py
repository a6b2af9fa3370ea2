"""Lists of jobs by what people keep of them and by what came out; the figures are set by hand, as nothing runs here."""

import json
from typing import Any

import pytest

from tests.api.service import Json, Service, job_body, pointers


def change(service: Service, job: str, **changes: Any) -> Any:
    return service.http.patch(f"/v1/jobs/{job}", json=changes)


def changed(service: Service, job: str, **changes: Any) -> Json:
    answer = change(service, job, **changes)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def listed(service: Service, **query: Any) -> list[str | None]:
    """Names of the jobs of a list that is read a job at a time."""
    return [job["name"] for job in service.walk("/v1/jobs", limit=1, **query)]


@pytest.fixture
def jobs(api: Service) -> dict[str, str]:
    """Ids of some jobs by name, oldest first."""
    return {name: api.submit(job_body(name=name))["id"] for name in ("b", "A", "c")}


class TestChange:
    def test_tags_are_given_at_submission_and_kept_by_a_clone(self, api: Service) -> None:
        job = api.submit(job_body(tags=["paper", "pilot", "paper"]))
        assert job["tags"] == ["paper", "pilot"]
        again = api.post(f"/v1/jobs/{job['id']}/clone", {"changes": {"name": "again"}}).json()
        assert again["tags"] == ["paper", "pilot"]
        assert pointers(api.post("/v1/jobs", job_body(tags=["fine", "a,b"]))) == ["/tags/1"]

    def test_keeps_what_is_left_out_and_changes_nothing_of_the_request(self, api: Service) -> None:
        job = api.submit(job_body(name="first"))
        assert (job["tags"], job["notes"], job["archived_at"]) == ([], None, None)
        changed(api, job["id"], name="second", tags=[" paper ", "pilot", "paper"], notes="see\nTable 2")
        found = changed(api, job["id"], archived=True)
        assert (found["name"], found["tags"], found["notes"]) == (
            "second",
            ["paper", "pilot"],
            "see\nTable 2",
        )
        assert found["archived_at"] is not None
        assert found["spec"] == job["spec"] == job_body(name="first")
        kept = ("name", "tags", "notes", "archived_at")
        assert {**found, **{each: job[each] for each in kept}} == job

    def test_archiving_twice_keeps_the_moment_and_all_can_be_taken_back(self, api: Service) -> None:
        job = api.submit(job_body(name="first"))["id"]
        archived = changed(api, job, archived=True)
        assert changed(api, job, archived=True) == archived
        found = changed(api, job, archived=False, name=None, tags=[], notes=None)
        assert (found["name"], found["tags"], found["notes"], found["archived_at"]) == (None, [], None, None)

    def test_who_follows_the_job_is_told(self, api: Service) -> None:
        path = f"/v1/jobs/{api.submit(job_body())['id']}"
        tag = api.get(path).headers["etag"]
        api.http.patch(path, json={"tags": ["x"]})
        assert api.get(path, headers={"If-None-Match": tag}).status_code == 200

    @pytest.mark.parametrize(
        ("sent", "wrong"),
        [
            ({}, ""),
            ({"names": "x"}, "/names"),
            ({"name": ""}, "/name"),
            ({"name": "two\nlines"}, "/name"),
            ({"name": 1}, "/name"),
            ({"tags": None}, "/tags"),
            ({"tags": "paper"}, "/tags"),
            ({"tags": ["fine", "a,b"]}, "/tags/1"),
            ({"tags": [" "]}, "/tags/0"),
            ({"tags": ["a\u2028b"]}, "/tags/0"),
            ({"tags": ["a" * 51]}, "/tags/0"),
            ({"tags": [str(n) for n in range(21)]}, "/tags"),
            ({"notes": "a" * 5001}, "/notes"),
            ({"notes": "\0"}, "/notes"),
            ({"archived": None}, "/archived"),
            ({"archived": "yes"}, "/archived"),
            ({"budget": None}, "/budget"),
        ],
    )
    def test_names_what_is_wrong(self, api: Service, sent: Json, wrong: str) -> None:
        job = api.submit(job_body(name="first"))
        answer = change(api, job["id"], **sent)
        assert (answer.status_code, pointers(answer)) == (422, [wrong])
        assert api.job(job["id"]) == job

    def test_a_budget_that_is_refused_changes_nothing_else(self, api: Service) -> None:
        job = api.submit(job_body(name="first"))
        assert change(api, job["id"], name="second", budget={"calls": 1}).status_code == 409
        assert api.job(job["id"]) == job

    def test_of_a_job_that_is_not_there(self, api: Service) -> None:
        assert change(api, "job_" + "0" * 26, tags=["x"]).status_code == 404


class TestFilters:
    def test_archived_jobs_are_listed_where_that_is_asked_for(
        self, api: Service, jobs: dict[str, str]
    ) -> None:
        changed(api, jobs["A"], archived=True)
        assert listed(api) == listed(api, archived="false") == ["c", "b"]
        assert listed(api, archived="true") == ["A"]
        assert listed(api, archived="any") == ["c", "A", "b"]

    def test_by_all_tags_of_several(self, api: Service, jobs: dict[str, str]) -> None:
        changed(api, jobs["A"], tags=["paper", "two words"])
        changed(api, jobs["b"], tags=["paper"])
        assert listed(api, tag="paper") == ["A", "b"]
        assert listed(api, tag=["two words", "paper"]) == ["A"]
        assert listed(api, tag="pape") == []

    def test_by_a_part_of_whatever_people_know_of_a_job(self, api: Service, jobs: dict[str, str]) -> None:
        changed(api, jobs["A"], tags=["100%"], notes="Für Ärzte")
        changed(api, jobs["b"], name=None)
        for part, found in (
            ("ärzte", ["A"]),
            ("0%", ["A"]),
            ("_%", []),
            (jobs["c"][-8:], ["c"]),
            ("SIM-FAITH", ["c", "A", None]),
            ("a\nb", []),
        ):
            assert listed(api, q=part) == found

    def test_by_model_and_framework(self, api: Service, jobs: dict[str, str]) -> None:
        acme = {"model": "acme/acme-1", "label": "ours"}
        api.submit(job_body(name="acme", models=[acme, "simulated/sim-faithful"]))
        text = {"persona": "E-low", "task": "essay", "text": "I stay in.", "model": "theirs"}
        api.submit(job_body(name="text", models=None, instructions=None, responses=[text]))
        assert listed(api, model="ours") == ["acme"]
        assert listed(api, model="acme/acme-1") == []
        assert listed(api, model="theirs") == ["text"]
        assert listed(api, model="simulated/sim-faithful", framework="atomic") == ["acme", "c", "A", "b"]
        assert listed(api, framework="personagym") == []
        (found,) = api.walk("/v1/jobs", q="acme")
        assert found["models"] == ["ours", "simulated/sim-faithful"]

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("q", "a" * 201),
            ("q", "\0"),
            ("model", "\0"),
            ("framework", "both"),
            ("archived", "yes"),
            ("sort", "price"),
            ("order", "name"),
        ],
    )
    def test_what_is_wrong_is_named(self, api: Service, name: str, value: str) -> None:
        answer = api.get("/v1/jobs", params={name: value})
        assert (answer.status_code, pointers(answer)) == (422, [f"/query/{name}"])

    def test_too_many_tags_or_one_that_cannot_be_stored(self, api: Service) -> None:
        assert pointers(api.get("/v1/jobs", params={"tag": [str(n) for n in range(21)]})) == ["/query/tag"]
        assert pointers(api.get("/v1/jobs", params={"tag": ["a", "\0"]})) == ["/query/tag/1"]


class TestOrder:
    def ended(self, api: Service, job: str, score: float | None, usd: float | None) -> None:
        found = {"model": "m", "metric": "acc_atom", "value": score, "n": 3}
        api.execute(
            "UPDATE jobs SET status = 'completed', finished_at = now(), scores = %s, score = %s, usd = %s,"
            " unpriced_calls = 2 WHERE id = %s",
            json.dumps([found]),
            score,
            usd,
            job,
        )

    def test_by_name_whatever_its_letters_and_by_id_where_there_is_none(
        self, api: Service, jobs: dict[str, str]
    ) -> None:
        changed(api, jobs["c"], name=None)
        assert listed(api, sort="name") == ["A", "b", None]
        assert listed(api, sort="-name") == [None, "b", "A"]
        assert listed(api, sort="created") == ["b", "A", None]

    def test_by_score_and_cost_page_after_page(self, api: Service, jobs: dict[str, str]) -> None:
        """Two jobs of the same figures, and one that has none yet."""
        more = {name: api.submit(job_body(name=name))["id"] for name in ("d", "e")}
        self.ended(api, jobs["b"], 0.5, 0.1)
        self.ended(api, jobs["A"], 0.5, 0.1)
        self.ended(api, jobs["c"], 1 / 3, 2.5)
        self.ended(api, more["d"], None, None)
        assert listed(api, sort="-score") == ["A", "b", "c", "e", "d"]
        assert listed(api, sort="score") == ["d", "e", "c", "b", "A"]
        assert listed(api, sort="-cost") == ["c", "A", "b", "e", "d"]
        assert listed(api, sort="cost", status="completed") == ["d", "b", "A", "c"]
        (found,) = api.walk(
            "/v1/jobs", name="c", sort="cost", status="completed", model="simulated/sim-faithful"
        )
        assert found["scores"] == [{"model": "m", "metric": "acc_atom", "value": 1 / 3, "n": 3}]
        assert found["cost"] == {"usd": 2.5, "unpriced_calls": 2}

    @pytest.mark.parametrize("sort", ["name", "cost", "-created"])
    @pytest.mark.parametrize(
        "cursor",
        [
            "x",
            "W10",
            "W3RydWVd",
            "WzFlOTk5LCAiYSJd",
            "W05hTiwgImEiXQ",
            "WyJhIiwgIlx1ZDgwMCJd",
            "WyJhXHUwMDAwIiwgImEiXQ",
        ],
    )
    def test_a_cursor_of_something_else_is_refused(self, api: Service, sort: str, cursor: str) -> None:
        answer = api.get("/v1/jobs", params={"sort": sort, "after": cursor})
        assert (answer.status_code, pointers(answer)) == (422, ["/query/after"])

    def test_a_cursor_of_another_order_is_refused(self, api: Service, jobs: dict[str, str]) -> None:
        assert jobs
        for sort, other in (("name", "cost"), ("cost", "-created"), ("-created", "score")):
            cursor = api.get("/v1/jobs", params={"limit": 1, "sort": sort}).json()["next_cursor"]
            assert pointers(api.get("/v1/jobs", params={"sort": other, "after": cursor})) == ["/query/after"]

    def test_the_longest_name_makes_a_cursor_that_is_taken(self, api: Service) -> None:
        longest = "\U0001f600" * 300
        for _ in range(2):
            api.submit(job_body(name=longest))
        assert listed(api, sort="name") == [longest] * 2
