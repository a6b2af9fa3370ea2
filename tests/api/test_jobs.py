"""The life of a job as far as it goes without workers."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, ClassVar

import pytest

from app.db.jobs.new_jobs import ROWS_AT_ONCE
from app.db.migration.migrate import upgrade
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from app.instruments.rules import RULES
from embedded.postgres import EmbeddedPostgres
from embedded.valkey import EmbeddedValkey
from tests.api.service import Json, Service, compact, job_body, pointers, serving
from tests.conftest import scratch_directory

TEXTS = [
    {"persona": "E-low", "task": "essay", "text": text}
    for text in ("I stay in. I read.", "I can't help with that.")
]


class TestSubmit:
    def test_it_is_accepted_and_can_be_followed(self, api: Service) -> None:
        body = job_body(name="a job", metadata={"commit": "abc"})
        response = api.post("/v1/jobs", body)
        assert response.status_code == 202
        job = response.json()
        assert response.headers["location"] == f"/v1/jobs/{job['id']}"
        assert response.headers["retry-after"] == "1"
        assert (job["status"], job["completeness"], job["name"]) == ("queued", "partial", "a job")
        assert (job["spec"], job["metadata"]) == (body, {"commit": "abc"})
        assert api.get(response.headers["location"]).json() == job

    def test_it_writes_the_plan_and_no_results(self, api: Service) -> None:
        # 1 persona × 2 tasks × 2 models = 4 cells of 1 × 2 runs; each cell fits into one shard.
        api.submit(
            job_body(tasks=["essay", "social_media_post"], models=["acme/acme-1", "simulated/sim-erratic"])
        )
        assert api.rows() == dict.fromkeys(api.rows(), 0) | {"jobs": 1, "cells": 4, "shards": 4}

    def test_progress_knows_the_generations_and_estimates_the_judgements(self, api: Service) -> None:
        progress = api.submit(job_body(tasks=["questionnaire"]))["progress"]
        # 10 questions × 2 runs
        none_yet = {"running": 0, "succeeded": 0, "failed": 0}
        assert progress["generation"] == {"total": 20, "pending": 20, "estimated": False} | none_yet
        assert progress["judging"]["estimated"] is True
        assert progress["judging"]["pending"] == progress["judging"]["total"] > 20

    def test_existing_texts_are_split_at_once_and_not_shown_again(self, api: Service) -> None:
        job = api.submit(job_body(models=None, instructions=None, responses=TEXTS))
        assert "responses" not in job["spec"]
        assert job["progress"]["generation"] == {
            "total": 2,
            "pending": 0,
            "running": 0,
            "succeeded": 2,
            "failed": 0,
            "estimated": False,
        }
        # Two sentences, and a refusal of one sentence, which counts as a verdict due.
        assert (job["progress"]["judging"]["total"], job["progress"]["judging"]["estimated"]) == (3, False)

    def test_no_texts_may_be_said_by_null(self, api: Service) -> None:
        answer = api.post("/v1/jobs", job_body() | {"responses": None})
        assert answer.status_code == 202
        assert "responses" not in answer.json()["spec"]

    def test_texts_are_kept_letter_by_letter_however_many(self, api: Service) -> None:
        texts = [
            f'{n}, "quoted" \\ {{braces}}, NULL, \u201ccurled\u201d\n\tand 😊. It is so.'
            for n in range(ROWS_AT_ONCE + 1)
        ]
        given = [TEXTS[0] | {"text": text} for text in texts]
        job = api.submit(job_body(models=None, instructions=None, responses=given))
        kept = list(api.walk(f"/v1/jobs/{job['id']}/responses", limit=200))
        assert [response["text"] for response in kept] == texts
        assert {response["run"] for response in kept} == set(range(len(texts)))
        assert all(
            [text[slice(*unit["span"])] for unit in response["units"]] == [text[:-10], "It is so."]
            for text, response in zip(texts, kept, strict=True)
        )

    def test_only_simulated_models_are_called_simulated(self, api: Service) -> None:
        assert api.submit(job_body())["simulated"] is True
        real = job_body(models=["acme/acme-1"], judges=["acme/acme-judge"])
        assert api.submit(real)["simulated"] is False


class TestIdempotencyKey:
    KEY: ClassVar = {"Idempotency-Key": "build-42"}

    def test_the_same_key_and_body_make_one_job(self, api: Service) -> None:
        first = api.submit(job_body(), headers=self.KEY)
        again = api.post("/v1/jobs", job_body(), headers=self.KEY)
        assert (again.status_code, again.json()["id"]) == (202, first["id"])
        assert api.rows()["jobs"] == 1

    def test_the_order_of_fields_does_not_matter(self, api: Service) -> None:
        first = api.submit(job_body(), headers=self.KEY)
        turned = dict(reversed(job_body().items()))
        assert api.submit(turned, headers=self.KEY)["id"] == first["id"]

    def test_another_body_is_refused(self, api: Service) -> None:
        api.submit(job_body(), headers=self.KEY)
        response = api.post("/v1/jobs", job_body(iterations=3), headers=self.KEY)
        assert response.status_code == 422
        assert (response.json()["code"], pointers(response)) == (
            "idempotency_conflict",
            ["/header/Idempotency-Key"],
        )
        assert api.rows()["jobs"] == 1

    def test_another_key_makes_another_job(self, api: Service) -> None:
        first = api.submit(job_body(), headers=self.KEY)
        assert api.submit(job_body(), headers={"Idempotency-Key": "build-43"})["id"] != first["id"]

    def test_a_wrong_body_does_not_use_the_key_up(self, api: Service) -> None:
        assert api.post("/v1/jobs", job_body(tasks=["x"]), headers=self.KEY).status_code == 422
        api.submit(job_body(), headers=self.KEY)

    def test_a_key_is_free_after_a_day(self, api: Service) -> None:
        first = api.submit(job_body(), headers=self.KEY)
        api.execute("UPDATE idempotency_keys SET created_at = now() - interval '24 hours 1 second'")
        assert api.submit(job_body(iterations=3), headers=self.KEY)["id"] != first["id"]

    def test_twenty_at_once_make_one_job(self, api: Service) -> None:
        with ThreadPoolExecutor(20) as pool:
            jobs = list(pool.map(lambda _: api.submit(job_body(), headers=self.KEY)["id"], range(20)))
        assert len(set(jobs)) == 1
        assert (api.rows()["jobs"], api.rows()["shards"]) == (1, 1)


class TestPlan:
    def test_nothing_is_stored(self, api: Service) -> None:
        plan = api.post("/v1/jobs/plan", job_body()).json()
        assert (plan["cells"], plan["runs_per_cell"], plan["responses"]) == (1, 2, 2)
        assert set(api.rows().values()) == {0}

    def test_it_adds_up(self, api: Service) -> None:
        # 15 personas × (10 + 1 + 1) items × 6 × 5 runs = 5,400 generations, as in the paper's set-up.
        body = {"personas": ["big-five"], "tasks": ["questionnaire", "essay", "social_media_post"]}
        plan = api.post(
            "/v1/jobs/plan", body | {"models": ["acme/acme-1"], "judges": ["acme/acme-judge"]}
        ).json()
        generation, judging = plan["stages"]
        assert (plan["cells"], plan["runs_per_cell"]) == (45, 30)
        assert (generation["calls"], plan["responses"]) == (5400, 5400)
        assert plan["calls"] == generation["calls"] + judging["calls"]
        # acme takes 600 requests a minute of each model; judging takes longest.
        assert plan["shortest_seconds"] == pytest.approx(judging["calls"] / 10, abs=0.1)
        price = generation["input_tokens"] * 1e-6 + generation["output_tokens"] * 2e-6
        assert generation["usd"] == pytest.approx(price)
        assert plan["cost"]["unpriced_models"] == ["acme/acme-judge"]
        assert 0 < plan["cost"]["usd_low"] < generation["usd"] < plan["cost"]["usd_high"]

    def test_existing_texts_are_counted_exactly(self, api: Service) -> None:
        body = job_body(models=None, instructions=None, responses=TEXTS)
        plan = api.post("/v1/jobs/plan", body).json()
        # The refusal's sentence is not sent to the judge.
        assert (plan["calls"], plan["estimated"], plan["responses"]) == (2, False, 2)

    def test_it_warns_of_what_will_be_missing(self, api: Service) -> None:
        warnings = api.post("/v1/jobs/plan", job_body(iterations=1)).json()["warnings"]
        assert any("RC_atom" in warning for warning in warnings)

    def test_a_plan_warns_of_judges_that_cannot_pass_over_a_sentence(self, api: Service) -> None:
        judge = {"model": "simulated/sim-judge", "profile": "selene"}
        warnings = api.post("/v1/jobs/plan", job_body(judges=[judge])).json()["warnings"]
        assert any("simulated/sim-judge scores every sentence" in warning for warning in warnings)


class TestList:
    @pytest.fixture
    def submitted(self, api: Service) -> list[str]:
        """The ids of seven jobs, newest first."""
        ids = [api.submit(job_body(metadata={"n": str(n), "odd": str(n % 2)}))["id"] for n in range(7)]
        return ids[::-1]

    def test_newest_first(self, api: Service, submitted: list[str]) -> None:
        assert [job["id"] for job in api.get("/v1/jobs").json()["data"]] == submitted

    @pytest.mark.parametrize("limit", [1, 3, 7, 500])
    def test_pages_hold_each_job_once(self, api: Service, submitted: list[str], limit: int) -> None:
        assert [job["id"] for job in api.walk("/v1/jobs", limit=limit)] == submitted

    def test_jobs_of_one_moment_are_not_lost_between_pages(self, api: Service, submitted: list[str]) -> None:
        api.execute("UPDATE jobs SET created_at = '2026-01-01'")
        assert {job["id"] for job in api.walk("/v1/jobs", limit=2)} == set(submitted)

    def test_a_job_that_comes_in_between_does_not_disturb_the_pages(
        self, api: Service, submitted: list[str]
    ) -> None:
        first = api.get("/v1/jobs?limit=3").json()
        api.submit(job_body())
        second = api.get("/v1/jobs", params={"limit": 4, "after": first["next_cursor"]}).json()
        assert [job["id"] for job in first["data"] + second["data"]] == submitted

    def test_by_status(self, api: Service, submitted: list[str]) -> None:
        api.post(f"/v1/jobs/{submitted[2]}/pause")
        assert [job["id"] for job in api.walk("/v1/jobs", status="paused")] == [submitted[2]]
        assert len(list(api.walk("/v1/jobs", status="queued"))) == 6

    def test_by_a_part_of_the_name_page_after_page(self, api: Service) -> None:
        named = ["Pilot 50%", "pilot_two", "50 PILOTS", "other", None]
        ids = {name: api.submit(job_body(name=name))["id"] for name in named}
        for part, found in (
            ("pilot", named[2::-1]),
            ("0%", ["Pilot 50%"]),
            ("_", ["pilot_two"]),
            ("\\", []),
            ("none", []),
        ):
            assert [job["id"] for job in api.walk("/v1/jobs", name=part, limit=1)] == [ids[n] for n in found]
        assert pointers(api.get("/v1/jobs", params={"name": "a\0"})) == ["/query/name"]
        assert pointers(api.get("/v1/jobs", params={"name": "a" * 201})) == ["/query/name"]

    def test_by_labels_all_of_which_must_hold(self, api: Service, submitted: list[str]) -> None:
        odd = [job["metadata"]["n"] for job in api.walk("/v1/jobs", **{"metadata[odd]": "1"})]
        assert odd == ["5", "3", "1"]
        assert list(api.walk("/v1/jobs", **{"metadata[odd]": "1", "metadata[n]": "2"})) == []

    def test_labels_are_words_not_patterns(self, api: Service) -> None:
        api.submit(job_body(metadata={'a"]} -- ü': "%_'"}))
        assert len(list(api.walk("/v1/jobs", **{'metadata[a"]} -- ü]': "%_'"}))) == 1
        assert list(api.walk("/v1/jobs", **{'metadata[a"]} -- ü]': "%"})) == []


class TestGet:
    def test_an_unchanged_job_is_not_sent_again(self, api: Service) -> None:
        path = f"/v1/jobs/{api.submit(job_body())['id']}"
        tag = api.get(path).headers["etag"]
        again = api.get(path, headers={"If-None-Match": f'"other", {tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        api.post(f"{path}/pause")
        changed = api.get(path, headers={"If-None-Match": tag})
        assert (changed.status_code, changed.json()["status"]) == (200, "paused")

    def test_retry_after_is_sent_while_there_is_something_to_wait_for(self, api: Service) -> None:
        path = f"/v1/jobs/{api.submit(job_body())['id']}"
        assert api.get(path).headers["retry-after"] == "1"
        api.execute("UPDATE jobs SET status = 'cancelled', finished_at = now()")
        assert "retry-after" not in api.get(path).headers

    def test_another_tenants_job_does_not_exist(self, api: Service) -> None:
        job_id = api.submit(job_body())["id"]
        for table in ("jobs", "cells", "shards"):
            api.execute(f"UPDATE {table} SET tenant = 'somebody else'")
        for suffix in ("", "/results", "/responses", "/report"):
            assert api.get(f"/v1/jobs/{job_id}{suffix}").status_code == 404
        for suffix in ("/cancel", "/pause", "/resume"):
            assert api.post(f"/v1/jobs/{job_id}{suffix}").status_code == 404
        assert api.http.delete(f"/v1/jobs/{job_id}").status_code == 404
        assert api.get("/v1/jobs").json()["data"] == []
        assert api.rows()["jobs"] == 1


class TestControl:
    def states(self, api: Service, *steps: str) -> list[tuple[int, str | None]]:
        """Status codes and the job's states after each step."""
        job_id = api.submit(job_body())["id"]
        answers = [api.post(f"/v1/jobs/{job_id}/{step}") for step in steps]
        return [(answer.status_code, answer.json().get("status_reason")) for answer in answers]

    def test_pausing_twice_is_pausing(self, api: Service) -> None:
        assert self.states(api, "pause", "pause") == [(200, "paused_by_user")] * 2

    def test_resuming_twice_is_resuming(self, api: Service) -> None:
        assert self.states(api, "pause", "resume", "resume") == [
            (200, "paused_by_user"),
            (200, None),
            (200, None),
        ]

    def test_cancelling_twice_is_cancelling(self, api: Service) -> None:
        assert self.states(api, "cancel", "cancel") == [(200, "cancelled_by_user")] * 2

    def test_a_paused_job_can_be_cancelled(self, api: Service) -> None:
        assert self.states(api, "pause", "cancel") == [(200, "paused_by_user"), (200, "cancelled_by_user")]

    def test_a_cancelled_job_can_be_neither_paused_nor_resumed(self, api: Service) -> None:
        job_id = api.submit(job_body())["id"]
        api.post(f"/v1/jobs/{job_id}/cancel")
        for step in ("pause", "resume"):
            response = api.post(f"/v1/jobs/{job_id}/{step}")
            assert (response.status_code, response.json()["code"]) == (409, "wrong_state")

    @pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
    def test_a_finished_job_stays_as_it_is(self, api: Service, status: str) -> None:
        job_id = api.submit(job_body())["id"]
        api.execute("UPDATE jobs SET status = %s, finished_at = now()", status)
        assert api.post(f"/v1/jobs/{job_id}/cancel").json()["status"] == status
        assert [api.post(f"/v1/jobs/{job_id}/{step}").status_code for step in ("pause", "resume")] == [
            409,
            409,
        ]
        assert api.job(job_id)["status"] == status

    def test_twenty_controls_at_once_leave_one_state(self, api: Service) -> None:
        job_id = api.submit(job_body())["id"]
        steps = ["pause", "resume", "pause", "resume", "cancel"] * 4
        with ThreadPoolExecutor(20) as pool:
            codes = list(pool.map(lambda step: api.post(f"/v1/jobs/{job_id}/{step}").status_code, steps))
        assert set(codes) <= {200, 409}
        assert api.job(job_id)["status"] == "cancelled"

    def test_a_job_that_never_started_is_cancelled_at_once_and_has_empty_results(self, api: Service) -> None:
        job_id = api.submit(job_body())["id"]
        cancelled = api.post(f"/v1/jobs/{job_id}/cancel").json()
        assert (cancelled["status"], cancelled["completeness"]) == ("cancelled", "partial")
        assert cancelled["finished_at"] is not None
        results = api.get(f"/v1/jobs/{job_id}/results").json()
        assert (results["completeness"], results["usage"]["calls"]) == ("partial", 0)
        (listed,) = api.get("/v1/jobs").json()["data"]
        assert (listed["status"], listed["cost"]["usd"]) == ("cancelled", 0)
        assert api.http.delete(f"/v1/jobs/{job_id}").status_code == 204


class TestDelete:
    @pytest.mark.parametrize("status", ["queued", "running", "paused", "cancelling", "finalizing"])
    def test_a_job_that_is_not_over_stays(self, api: Service, status: str) -> None:
        job_id = api.submit(job_body())["id"]
        api.execute("UPDATE jobs SET status = %s", status)
        response = api.http.delete(f"/v1/jobs/{job_id}")
        assert (response.status_code, response.json()["code"]) == (409, "wrong_state")
        assert api.rows()["jobs"] == 1


class TestResultsOfAQueuedJob:
    def test_every_metric_is_missing_with_a_reason(self, api: Service) -> None:
        results = api.get(f"/v1/jobs/{api.submit(job_body())['id']}/results").json()
        assert results["completeness"] == "partial"
        (cell,) = results["cells"]
        assert all(metric["value"] is None and metric["n"] == 0 for metric in cell["metrics"].values())
        assert all(metric["reason"] for metric in cell["metrics"].values())

    @pytest.mark.parametrize("format_", ["json", "html", "csv", "jsonl", "parquet"])
    @pytest.mark.parametrize("level", ["verdicts", "cells"])
    def test_every_report_can_be_made(self, api: Service, format_: str, level: str) -> None:
        job_id = api.submit(job_body())["id"]
        response = api.get(f"/v1/jobs/{job_id}/report", params={"format": format_, "level": level})
        if level == "cells" and format_ in {"json", "html"}:
            assert pointers(response) == ["/query/level"]
        else:
            assert response.status_code == 200


@pytest.fixture(scope="module")
def parts() -> Iterator[tuple[Service, EmbeddedPostgres, EmbeddedValkey]]:
    """A service with databases of its own, which the tests may stop."""
    with (
        scratch_directory() as directory,
        EmbeddedPostgres(directory / "postgres", durable=False) as postgres,
        EmbeddedValkey(directory / "valkey") as valkey,
    ):
        upgrade(postgres.url())
        with serving(directory, postgres.url(), valkey.url()) as service:
            yield service, postgres, valkey


class TestWhenAPartIsDown:
    def test_without_a_worker_and_a_sweeper_it_serves_and_names_them(
        self, parts: tuple[Service, Any, Any]
    ) -> None:
        ready = parts[0].get("/readyz")
        well = {
            "database": "ok",
            "queue": "ok",
            "schema": "ok",
            "row_level_security": "ok",
        }
        assert (ready.status_code, ready.json()) == (
            200,
            {
                "status": "degraded",
                "parts": well | {"workers": "none is ready", "sweeper": "none is running"},
            },
        )
        assert parts[0].get("/healthz").status_code == 200

    def test_without_the_queue_jobs_are_still_accepted(
        self, parts: tuple[Service, EmbeddedPostgres, EmbeddedValkey]
    ) -> None:
        service, _, valkey = parts
        valkey.process.stop()
        ready = service.get("/readyz")
        assert (ready.status_code, ready.json()["status"], ready.json()["parts"]["queue"]) == (
            200,
            "degraded",
            "unreachable: there is no such socket",
        )
        assert ready.json()["parts"]["database"] == "ok"
        assert "workers" not in ready.json()["parts"]
        assert service.get("/healthz").status_code == 200
        assert service.submit(job_body())["status"] == "queued"
        valkey.restart()
        assert service.get("/readyz").json()["parts"]["queue"] == "ok"

    def test_without_the_database_every_request_says_when_to_try_again(
        self, parts: tuple[Service, EmbeddedPostgres, EmbeddedValkey]
    ) -> None:
        service, postgres, _ = parts
        job_id = service.submit(job_body())["id"]
        postgres.process.stop()
        ready = service.get("/readyz")
        assert ready.status_code == 503
        assert ready.json()["parts"]["database"].startswith("unreachable: ")
        assert ready.json()["parts"]["queue"] == "ok"
        answers = [
            service.post("/v1/jobs", job_body()),
            service.post("/v1/jobs", job_body(), headers={"Idempotency-Key": "x"}),
            service.post("/v1/jobs/plan", job_body()),  # its connections may be in the database
            service.get("/v1/jobs"),
            service.get(f"/v1/jobs/{job_id}"),
            service.get(f"/v1/jobs/{job_id}/results"),
            service.get(f"/v1/jobs/{job_id}/report"),
            service.post(f"/v1/jobs/{job_id}/cancel"),
            service.http.delete(f"/v1/jobs/{job_id}"),
        ]
        assert [answer.status_code for answer in answers] == [503] * len(answers)
        assert {answer.headers["retry-after"] for answer in answers} == {"2"}
        postgres.restart()
        assert service.job(job_id)["status"] == "queued"


class TestCatalog:
    def test_personas(self, api: Service) -> None:
        personas = api.get("/v1/personas").json()
        assert len(personas["sets"]["big-five"]) == 15
        assert len(personas["sets"]["personagym-50"]) == 50
        assert len(personas["data"]) == 15 + 50
        assert personas["data"][0]["sets"] == ["big-five"]
        assert len(personas["instructions"]) == 6

    def test_tasks(self, api: Service) -> None:
        tasks = api.get("/v1/tasks").json()
        atomic = [task["id"] for task in tasks["data"] if task["framework"] == "atomic"]
        assert atomic == [*load_atomic().tasks]
        assert atomic[:3] == ["questionnaire", "essay", "social_media_post"]
        assert len(tasks["data"]) - len(atomic) == len(load_personagym().tasks)
        assert [(d["id"], len(d["questions"])) for d in tasks["dimensions"]] == [(d, 10) for d in "OCEAN"]

    def test_tasks_list_the_versions_that_a_job_may_choose(self, api: Service) -> None:
        known = api.get("/v1/tasks").json()["versions"]
        assert known == {kind: [*names] for kind, names in RULES.known.items()}
        oldest = {kind: names[0] for kind, names in known.items()}
        assert api.post("/v1/jobs/plan", job_body(versions=oldest)).status_code == 200
        refused = api.post("/v1/jobs/plan", job_body(versions=oldest | {"refusals": "refusals-en-v9"}))
        assert refused.status_code == 422
        assert refused.json()["errors"] == [
            {
                "pointer": "/versions/refusals",
                "message": f"unknown version 'refusals-en-v9'; known: {', '.join(known['refusals'])}",
            }
        ]
        assert api.post("/v1/jobs/plan", job_body(versions={"judge": "v1"})).status_code == 422

    def test_models_show_limits_and_no_keys(self, api: Service) -> None:
        connections = {c["id"]: c for c in api.get("/v1/models").json()["data"]}
        assert connections["acme"] == {
            "id": "acme",
            "kind": "openai",
            "simulated": False,
            "models": ["acme-1", "acme-judge"],
            "requests_per_minute": 600,
            "tokens_per_minute": None,
            "max_in_flight": 7,
        }
        assert {name for name, c in connections.items() if c["simulated"]} == {
            "simulated",
            "simulated-anthropic",
        }


class TestConcurrentJobs:
    def test_other_requests_go_on_while_a_large_body_is_planned(self, api: Service) -> None:
        # 3,000 texts of 40 sentences that need a second look take seconds to split; polls must not wait for them, however slow the
        # machine is.
        texts: list[Json] = [TEXTS[0] | {"text": "I stay at home from 5 p.m. on and read. " * 40}] * 3000
        body = compact(job_body(models=None, instructions=None, responses=texts))
        with ThreadPoolExecutor(1) as pool:
            planning = pool.submit(api.send, "/v1/jobs/plan", body)
            waits = []
            while not planning.done():
                waits.append(api.get("/v1/jobs?limit=1").elapsed)
        assert planning.result().json()["calls"] == 120_000
        assert len(waits) > 20
        assert max(waits) < planning.result().elapsed / 4

    def test_ids_sort_by_time(self, api: Service) -> None:
        jobs = [api.submit(job_body()) for _ in range(3)]
        assert [job["id"] for job in jobs] == sorted(job["id"] for job in jobs)
        moments = [datetime.fromisoformat(job["created_at"]) for job in jobs]
        assert moments == sorted(moments)
