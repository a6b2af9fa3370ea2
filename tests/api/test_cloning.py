"""Running a job again, with changes."""

from typing import Any

import pytest

from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_personagym import ASKED, gym_body

TEXT = {"persona": "E-low", "task": "essay", "text": "I stay in. I read."}


def clone(service: Service, job: Json, **changes: Any) -> Any:
    return service.post(f"/v1/jobs/{job['id']}/clone", {"changes": changes})


class TestClone:
    def test_makes_another_job_of_the_same_body(self, api: Service) -> None:
        job = api.submit(job_body(name="first", metadata={"commit": "abc"}))
        answer = clone(api, job)
        assert answer.status_code == 202
        again = answer.json()
        assert again["id"] != job["id"]
        assert answer.headers["location"] == f"/v1/jobs/{again['id']}"
        kept = ("spec", "name", "metadata", "status", "progress")
        assert {name: again[name] for name in kept} == {name: job[name] for name in kept}

    def test_replaces_whole_fields_and_leaves_out_those_that_are_null(self, api: Service) -> None:
        job = api.submit(job_body(name="first", seed=7, metadata={"commit": "abc", "by": "me"}))
        again = clone(api, job, iterations=3, seed=None, metadata={"commit": "def"}).json()
        assert again["spec"] == job_body(name="first", iterations=3, metadata={"commit": "def"})
        assert again["metadata"] == {"commit": "def"}
        assert again["progress"]["generation"]["total"] == 3
        assert api.job(job["id"])["spec"] == job["spec"]

    def test_is_made_once_by_an_idempotency_key(self, api: Service) -> None:
        job = api.submit(job_body())
        path, headers = f"/v1/jobs/{job['id']}/clone", {"Idempotency-Key": "again"}
        first, second = (
            api.post(path, {"changes": {"iterations": 3}}, headers=headers).json()["id"] for _ in range(2)
        )
        assert first == second
        assert api.post(path, {"changes": {}}, headers=headers).status_code == 422
        assert api.rows()["jobs"] == 2

    @pytest.mark.parametrize(
        ("changes", "wrong"),
        [
            ({"iterations": 0}, "/changes/iterations"),
            ({"iteration": 3}, "/changes/iteration"),
            ({"tasks": ["essays"]}, "/changes/tasks/0"),
            ({"models": None}, "/changes/models"),
            ({"name": "\0"}, "/changes/name"),
            ({"metadata": {"a": 1}}, "/changes/metadata/a"),
        ],
    )
    def test_names_what_is_wrong_with_a_change(self, api: Service, changes: Json, wrong: str) -> None:
        answer = clone(api, api.submit(job_body()), **changes)
        assert (answer.status_code, pointers(answer)) == (422, [wrong])
        assert api.rows()["jobs"] == 1

    def test_names_wrong_form_and_wrong_names_in_one_answer(self, api: Service) -> None:
        answer = clone(api, api.submit(job_body()), iterations="2", models=["acme/acme-9"])
        assert pointers(answer) == ["/changes/iterations", "/changes/models/0"]

    def test_asks_for_texts_again_since_no_body_has_them(self, api: Service) -> None:
        job = api.submit(job_body(models=None, instructions=None, responses=[TEXT]))
        answer = clone(api, job)
        assert (answer.status_code, pointers(answer)) == (422, ["/changes/responses"])
        other = [TEXT | {"text": "I go out."}]
        assert clone(api, job, responses=other).json()["progress"]["judging"]["total"] == 1

    def test_asks_for_questions_again_since_no_body_has_them(self, api: Service) -> None:
        job = api.submit(gym_body(questions=ASKED, tasks=["toxicity_control"]))
        answer = clone(api, job)
        assert (answer.status_code, pointers(answer)) == (422, ["/changes/questions"])
        assert clone(api, job, questions=ASKED).status_code == 202
        assert clone(api, job, questions=None).status_code == 202
        plain = api.submit(gym_body())
        assert clone(api, plain).status_code == 202

    def test_is_not_for_jobs_that_make_up_personas(self, api: Service) -> None:
        body = {"generate": {"count": 1, "reasoner": "simulated/sim-reasoner"}}
        answer = clone(api, api.post("/v1/persona-sets", body).json())
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")

    def test_knows_no_other_job(self, api: Service) -> None:
        assert clone(api, {"id": "job_01kxyz0abcdefghjkmnpqrstvw"}).status_code == 404
