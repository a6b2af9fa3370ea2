import re
import time

from prometheus_client.parser import text_string_to_metric_families

from tests.api.service import Service, job_body
from tests.observe import PATIENCE

PERSONA = "an outspoken lighthouse keeper"


def samples(service: Service, name: str) -> list[tuple[dict[str, str], float]]:
    """The labels and values of one series."""
    text = service.get("/metrics").text
    families = text_string_to_metric_families(text)
    return [
        (sample.labels, sample.value)
        for family in families
        for sample in family.samples
        if sample.name == name
    ]


def eventually(service: Service, name: str, **labels: str) -> list[tuple[dict[str, str], float]]:
    """A series' samples that have these labels and are not 0, once there are any."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = [
            (have, value)
            for have, value in samples(service, name)
            if value and labels.items() <= have.items()
        ]
        if found:
            return found
        assert time.monotonic() < deadline, f"no {name} with {labels}"
        time.sleep(0.2)


def judge_tokens(service: Service) -> dict[str, float]:
    """The tokens of the simulated judge, by what they are."""
    counted = {"input": 0.0, "output": 0.0}
    for labels, value in samples(service, "assay_tokens_total"):
        if labels["model"] == "sim-judge":
            counted[labels["what"]] += value
    return counted


class TestMetrics:
    def test_are_in_the_form_that_prometheus_reads(self, api: Service) -> None:
        response = api.get("/metrics")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/plain")
        assert {labels["part"]: value for labels, value in samples(api, "assay_up")} == {
            "database": 1.0,
            "redis": 1.0,
        }

    def test_show_a_waiting_job_and_what_it_has_before_it(self, api: Service) -> None:
        job = api.submit(job_body())
        [(_, shards)] = eventually(api, "assay_job_open_shards", job=job["id"])
        [(_, responses)] = eventually(api, "assay_job_open_responses", job=job["id"])
        assert (shards >= 1, responses) == (True, 2)
        assert eventually(api, "assay_jobs", status="queued") == [({"status": "queued"}, 1.0)]

    def test_show_what_webhooks_are_still_to_be_told(self, api: Service) -> None:
        api.empty("webhooks")
        hook = api.post("/v1/webhooks", {"url": "https://ci.example.com/hook"}).json()
        api.post(f"/v1/webhooks/{hook['id']}/test")
        api.execute(
            "UPDATE webhook_deliveries SET created_at = now() - interval '1 hour', due_at = now() - interval '60 s'"
        )
        assert eventually(api, "assay_webhook_messages") == [({}, 1.0)]
        [(_, oldest)] = eventually(api, "assay_webhook_oldest_seconds")
        [(_, overdue)] = eventually(api, "assay_webhook_overdue_seconds")
        assert 3600 <= oldest < 2 * 3600
        assert 60 <= overdue < 3600

    def test_show_uploads_that_are_not_finished(self, api: Service) -> None:
        api.empty("uploads")
        path = api.post("/v1/uploads", headers={"Upload-Length": "1000"}).headers["location"]
        line = b'{"persona": "E-low", "task": "essay", "text": "Quiet."}\n'
        part = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        assert api.http.patch(path, content=line * 2, headers=part).status_code == 204
        for name, value in (("uploads", 1.0), ("upload_bytes", 2.0 * len(line)), ("upload_records", 2.0)):
            found = eventually(api, f"assay_{name}", status="receiving")
            assert found == [({"status": "receiving"}, value)], name
            held = {labels["status"]: held for labels, held in samples(api, f"assay_{name}")}
            assert held == {"receiving": value, "reading": 0.0, "ready": 0.0, "invalid": 0.0}, name

    def test_count_the_requests_of_the_api(self, api: Service) -> None:
        api.get("/v1/jobs/nothing")
        [(labels, value)] = eventually(api, "assay_http_requests_total", method="GET", status="404")
        assert value >= 1
        assert labels["process"].startswith("api@")

    def test_hold_nothing_that_a_tenant_wrote(self, api: Service) -> None:
        body = job_body(personas=[{"id": "keeper", "description": PERSONA, "traits": {"E": "high"}}])
        job = api.submit(body | {"name": "my secret job", "metadata": {"team": "confidential"}})
        eventually(api, "assay_job_open_shards", job=job["id"])
        text = api.get("/metrics").text
        assert not re.search("lighthouse|keeper|secret|confidential", text)


class TestMetricsOfWorkers:
    def test_are_shown_by_the_api(self, stack: Service) -> None:
        job = stack.submit(job_body())
        stack.wait(job["id"], "completed")
        judged = eventually(
            stack,
            "assay_calls_total",
            connection="simulated",
            model="sim-judge",
            stage="judging",
            outcome="ok",
        )
        assert all(labels["process"].startswith("worker@") for labels, _ in judged)
        # For the first permit Redis is asked; for nothing else has a call of so small a job to wait.
        eventually(stack, "assay_wait_seconds_count", limiter="rate", model="sim-judge")
        eventually(stack, "assay_call_seconds_count", model="sim-judge")
        processes = {labels["process"] for labels, _ in samples(stack, "assay_loop_lag_seconds")}
        assert {process.partition("@")[0] for process in processes} >= {"api", "worker"}

    def test_count_the_tokens_that_the_job_s_usage_has(self, stack: Service) -> None:
        before = judge_tokens(stack)
        job = stack.submit(job_body())
        stack.wait(job["id"], "completed")
        usages = stack.get(f"/v1/jobs/{job['id']}").json()["usage"]["by_model"]
        [used] = [usage for usage in usages if usage["stage"] == "judging"]
        wanted = {what: before[what] + used[f"{what}_tokens"] for what in before}
        deadline = time.monotonic() + PATIENCE
        # What a process shows is up to five seconds old, so an earlier job's tokens may be among those that come.
        while any(judge_tokens(stack)[what] < wanted[what] for what in wanted):
            assert time.monotonic() < deadline, (wanted, judge_tokens(stack))
            time.sleep(0.2)
        assert min(used["input_tokens"], used["output_tokens"]) > 0
