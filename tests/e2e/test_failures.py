"""Whole jobs on models that refuse: what stops them, what does not, and what people read of it."""

from collections.abc import Iterator

import pytest

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import TERMINAL, Json, Stack, running_stack
from tests.integration.simulator.conftest import RunningSimulator

JOB: Json = {
    "personas": ["big-five"],
    "tasks": ["essay", "social_media_post"],
    "models": ["lab/sim-faithful"],
    "judges": ["lab/sim-judge"],
    "instructions": [1, 2],
    "iterations": 3,
}
"""180 texts of some ten sentences."""
DEPRECATED = "`temperature` is deprecated for this model."


@pytest.fixture(scope="module")
def stack(databases: Databases, template_database: str) -> Iterator[Stack]:
    """Two workers, connected to a simulator as to any other server: its models have quirks by their names."""
    with scratch_directory() as directory:
        simulator = RunningSimulator(directory)
        config = directory / "assay.yaml"
        config.write_text(
            f"connections: {{lab: {{kind: openai, base_url: '{simulator.url}/v1', api_key_env: LAB_KEY}}}}"
        )
        with (
            databases.new("failures", template=template_database) as url,
            EmbeddedValkey(directory / "valkey") as queue,
            running_stack(
                directory / "stack",
                database_url=url,
                redis_url=queue.url(),
                workers=2,
                environment={"ASSAY_CONFIG": str(config), "LAB_KEY": "any"},
            ) as running,
        ):
            yield running
        simulator.stop()


def stopped(stack: Stack, job: Json) -> Json:
    return stack.until(stack.submit(job), lambda found: found["status"] not in {"queued", "running"})


class TestJudge:
    def test_that_refuses_the_temperature_pauses_the_job_before_the_texts_are_paid(
        self, stack: Stack
    ) -> None:
        judge = "lab/sim-judge+deprecated-temperature"
        job = stopped(stack, JOB | {"judges": [judge]})
        assert (job["status"], job["status_reason"]) == ("paused", "invalid_request_error")
        error = job["error"]
        assert (error["detail"], error["model"], error["stage"]) == (
            f"HTTP 400: {DEPRECATED}",
            judge,
            "judging",
        )
        assert "parameter" in error["remedy"]
        assert 0 < job["progress"]["generation"]["succeeded"] < 60, "of 180, with each worker's first ones"
        (failure,) = job["failures"]
        assert (failure["model"], failure["detail"]) == (judge, f"HTTP 400: {DEPRECATED}")
        # Calls that were in flight end after the pause, perhaps between the reading of the two counts.
        settled = stack.until(
            job["id"], lambda found: found["failures"][0]["calls"] == found["usage"]["failed_calls"]
        )
        assert settled["usage"]["failed_calls"] >= 10
        page = stack.api.get(f"/jobs/{job['id']}", headers={"accept": "text/html"}).text
        assert DEPRECATED in page
        assert "Failed calls" in page
        stack.act(job["id"], "cancel")
        ended = stack.ended(job["id"])
        assert stack.results(ended["id"])["failures"][0]["detail"] == f"HTTP 400: {DEPRECATED}"
        report = stack.api.get(f"/v1/jobs/{job['id']}/report", params={"format": "html"}).text
        assert "Provider message" in report

    def test_of_a_small_job_fails_it_with_the_words(self, stack: Stack) -> None:
        texts = [{"persona": "E-low", "task": "essay", "model": "bot", "text": "I read. I rest."}]
        judge = "lab/sim-judge+deprecated-temperature"
        body = {"personas": ["E-low"], "tasks": ["essay"], "responses": texts, "judges": [judge]}
        job = stopped(stack, body)
        job = stack.ended(job["id"])
        assert (job["status"], job["error"]["detail"]) == ("failed", f"HTTP 400: {DEPRECATED}")
        (response,) = stack.responses(job["id"])
        found = [(one["raw"], one["error"]) for unit in response["units"] for one in unit["verdicts"]]
        assert found == [(None, f"invalid_request_error: HTTP 400: {DEPRECATED}")] * 2


class TestPrompts:
    def test_with_a_system_message_that_a_model_refuses_stop_the_job_with_the_remedy(
        self, stack: Stack
    ) -> None:
        model = "lab/sim-faithful+no-system=0.1"
        job = stack.until(
            stack.submit(JOB | {"models": [model]}), lambda job: job["status"] in {*TERMINAL, "paused"}
        )
        # One refusal in ten may be the job's very first call, which ends it.
        assert job["status"] in {"paused", "failed"}
        assert job["status_reason"] == "system_message_not_supported"
        assert job["error"]["detail"] == "HTTP 400: System role not supported"
        assert '"system": "in_user_turn"' in job["error"]["remedy"]
        (failure,) = job["failures"]
        assert failure["calls"] < 20
        job_id = stack.submit(JOB | {"models": [{"model": model, "system": "in_user_turn"}]})
        assert stack.ended(job_id)["completeness"] == "full"

    def test_of_which_some_are_filtered_do_not_stop_a_job(self, stack: Stack) -> None:
        job = stack.ended(stack.submit(JOB | {"models": ["lab/sim-faithful+filtered=0.1"]}))
        assert (job["status"], job["error"]) == ("completed", None)
        assert {failure["code"] for failure in job["failures"]} == {"content_policy_violation"}
        assert all("content filter" in failure["remedy"] for failure in job["failures"])


class TestErrorInAChoice:
    def test_is_tried_again_and_shown_with_its_words(self, stack: Stack) -> None:
        job = stack.ended(stack.submit(JOB | {"models": ["lab/sim-faithful+error-in-choice=0.1"]}))
        assert (job["status"], job["completeness"]) == ("completed", "full")
        (failure,) = job["failures"]
        assert (failure["code"], failure["http_status"]) == ("http_502", 502)
        assert failure["detail"] == "HTTP 502: Upstream error from Sim"
