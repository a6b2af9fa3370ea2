"""A schedule that may spend little, by a provider that takes money: the whole service, with a webhook and the console."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import psycopg
import pytest
import yaml

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Json, Stack, running_stack
from tests.integration.simulator.conftest import RunningSimulator
from tests.observe import eventually

RUN_USD, TOTAL_USD = 0.02, 0.03
"""A response of 100 tokens at $20 a million costs at most $0.002 and its prompt, so that a run of 30 is more than either."""
JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["social_media_post"],
    "models": [{"model": "dear/sim-faithful", "max_tokens": 100}],
    "judges": [{"model": "dear/sim-judge", "max_tokens": 20}],
    "instructions": [1],
    "iterations": 30,
}


class Told(ThreadingHTTPServer):
    """Somebody whom the service tells."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.messages: list[Json] = []
        Thread(target=self.serve_forever, daemon=True).start()


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Told)
        self.server.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """Says nothing."""


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    with Told() as server:
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def service(
    told: Told,
    simulator: RunningSimulator,
    databases: Databases,
    template_database: str,
    valkey: EmbeddedValkey,
) -> Iterator[tuple[Stack, str]]:
    prices = {name: {"input": 10.0, "output": 20.0} for name in ("sim-faithful", "sim-judge")}
    dear = {
        "kind": "openai",
        "base_url": f"{simulator.url}/v1",
        "api_key_env": "PROVIDER_KEY",
        "prices": prices,
    }
    with databases.new("schedules_e2e", template=template_database) as url, scratch_directory() as directory:
        config = directory / "assay.yaml"
        config.write_text(yaml.safe_dump({"connections": {"dear": dear}}))
        variables = {
            "ASSAY_CONFIG": str(config),
            "PROVIDER_KEY": "any",
            "ASSAY_WEBHOOK_HOSTS": f"127.0.0.1:{told.server_port}",
        }
        with running_stack(
            directory / "stack", database_url=url, redis_url=valkey.url(), environment=variables
        ) as run:
            yield run, libpq_url(url)


def test_a_run_and_then_all_runs_use_up_what_they_may_spend_and_it_is_told(
    service: tuple[Stack, str], told: Told
) -> None:
    stack, url = service
    hook = stack.api.post("/v1/webhooks", json={"url": f"http://127.0.0.1:{told.server_port}/"})
    assert hook.status_code == 201, hook.text
    budget = {"run_usd": RUN_USD, "total_usd": TOTAL_USD}
    made = stack.api.post("/v1/schedules", json={"cron": "0 0 1 1 *", "job": JOB, "budget": budget})
    assert made.status_code == 201, made.text
    path = made.headers["Location"]

    def runs() -> list[Json]:
        found: list[Json] = stack.api.get(f"{path}/runs").json()["data"]
        return found[::-1]

    for count in (1, 2):
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE schedules SET next_due = clock_timestamp()")
        assert eventually(lambda: len(runs()) == count and runs()[-1]["ended_at"])  # noqa: B023 - at once
    first, second = runs()
    assert [run["state"] for run in (first, second)] == ["failed", "failed"]
    assert first["reason"] == "the run's budget is used up; the job is paused"
    assert second["reason"] == "the schedule's budget is used up; the job is paused"
    assert 0 < first["usd"] <= RUN_USD
    assert first["usd"] + second["usd"] <= TOTAL_USD
    limits = [stack.job(run["job"])["budget"]["usd"]["limit"] for run in (first, second)]
    assert limits == [RUN_USD, pytest.approx(TOTAL_USD - first["usd"])]

    schedule = stack.api.get(path).json()
    assert (schedule["paused_reason"], schedule["next_due"]) == ("budget_used_up", None)
    assert schedule["budget"]["spent_usd"] == pytest.approx(first["usd"] + second["usd"])
    failed = [run["id"] for run in (first, second)]

    def heard() -> list[Json]:
        return [each for each in told.messages if each["type"] == "schedule.run_failed"]

    assert eventually(lambda: len(heard()) == 2)
    assert sorted((each["data"]["run"], each["data"]["reason"]) for each in heard()) == sorted(
        zip(failed, (first["reason"], second["reason"]), strict=True)
    )
    page = stack.api.get(path.removeprefix("/v1"), headers={"Accept": "text/html"}).text
    assert "budget used up" in page
    assert "the schedule&#39;s budget is used up" in page
