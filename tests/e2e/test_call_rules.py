"""An operator changes the connections while jobs are paused or at work: no call is sent that a new job could not send."""

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import pytest
import yaml

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, running_stack
from tests.integration.simulator.conftest import RunningSimulator

PRICE = {"input": 1.0, "output": 2.0}
MODELS = ("sim-faithful", "sim-judge")
CHANGES: dict[str, tuple[str, Json]] = {
    "model": ("model_not_allowed", {"models": ["sim-judge"]}),
    "judge": ("model_not_allowed", {"models": ["sim-faithful"]}),
    "price": ("price_unknown", {"prices": {"sim-judge": PRICE}}),
    "field": ("extra_not_allowed", {"allow_extra": []}),
    "batches": ("no_batch_endpoints", {"batches": False}),
    "kind": ("parameters_changed", {"kind": "anthropic"}),
    "gone": ("unknown_connection", {}),
}
"""What each connection of the file loses, by the connection's name."""


class Restart(Protocol):
    def __call__(self, *, changed: bool) -> AbstractContextManager[Stack]: ...


@pytest.fixture(scope="module")
def restart(
    simulator: RunningSimulator, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> Iterator[Restart]:
    """Starts the service on the same database with the operator's file as it was, or changed."""
    simulator.configure(latency_ms=300, batch_ms=100)
    usual: Json = {
        "kind": "openai",
        "base_url": f"{simulator.url}/v1",
        "api_key_env": "PROVIDER_KEY",
        "models": [*MODELS],
        "prices": dict.fromkeys(MODELS, PRICE),
        "allow_extra": ["service_tier"],
        "batches": True,
    }
    first = {name: copy.deepcopy(usual) for name in CHANGES}
    second = {name: first[name] | change for name, (_, change) in CHANGES.items() if name != "gone"}
    with databases.new("call_rules", template=template_database) as url, scratch_directory() as directory:

        @contextmanager
        def started(*, changed: bool) -> Iterator[Stack]:
            config = directory / "assay.yaml"
            config.write_text(yaml.safe_dump({"connections": second if changed else first}))
            variables = {
                "ASSAY_CONFIG": str(config),
                "PROVIDER_KEY": "any",
                "ASSAY_BATCH_POLL_SECONDS": "0.2",
                "ASSAY_SWEEP_SECONDS": "0.2",
                "ASSAY_LEASE_SECONDS": "5",
            }
            with running_stack(
                directory / "stack", database_url=url, redis_url=valkey.url(), environment=variables
            ) as stack:
                yield stack

        yield started


def body(connection: str) -> Json:
    model: dict[str, Any] = {"model": f"{connection}/sim-faithful", "max_tokens": 300}
    if connection == "field":
        model["extra"] = {"service_tier": "priority"}
    return {
        "personas": ["E-high", "N-low"],
        "tasks": ["essay"],
        "models": [model],
        "judges": [{"model": f"{connection}/sim-judge", "max_tokens": 20}],
        "instructions": [0],
        "iterations": 30,
        "execution": "batch" if connection == "batches" else "direct",
    } | ({"budget": {"usd": 5.0}} if connection == "price" else {})


def calls_of(simulator: RunningSimulator, job_id: str) -> int:
    return sum(str(entry["request_id"]).startswith(f"{job_id}/") for entry in simulator.ledger())


def has_no_batch_at_the_provider(job: Json) -> bool:
    """A batch made before the pause and not submitted yet stays open until the job is resumed."""
    batches = job["batches"]
    return batches is None or not batches["open"] or batches["waiting_for"].endswith("not submitted yet")


@pytest.mark.slow
def test_what_a_changed_file_forbids_is_not_sent_by_jobs_under_way(
    restart: Restart, simulator: RunningSimulator
) -> None:
    with restart(changed=False) as stack:
        paused = {name: stack.submit(body(name)) for name in CHANGES}
        for job in paused.values():
            stack.act(job, "pause")
        running = {name: stack.submit(body(name)) for name in CHANGES if name != "batches"}
        for job in running.values():
            stack.until(job, lambda found: found["usage"]["calls"] > 0)
        stack.until(paused["batches"], has_no_batch_at_the_provider)
    before = {job: calls_of(simulator, job) for job in (*paused.values(), *running.values())}
    with restart(changed=True) as stack:
        for name, job in running.items():
            found = stack.until(job, lambda each: each["status"] == "paused")
            assert found["status_reason"] == CHANGES[name][0], name
            assert found["error"]["remedy"], name
        for name, job in (*paused.items(), *running.items()):
            answer = stack.api.post(f"/v1/jobs/{job}/resume")
            assert (answer.status_code, answer.json()["code"]) == (409, CHANGES[name][0]), (name, answer.text)
            assert stack.job(job)["status"] == "paused"
            if name in running and running[name] == job:
                error = stack.job(job)["error"]
                assert answer.json()["detail"] == f"{error['detail']}. {error['remedy']}"
        for name in CHANGES:
            refused = stack.api.post("/v1/jobs", json=body(name))
            assert refused.status_code == (202 if name == "kind" else 422), (name, refused.text)
            if refused.is_success:
                stack.act(refused.json()["id"], "cancel")
    assert {job: calls_of(simulator, job) for job in before} == before
    simulator.configure(latency_ms=1)
    with restart(changed=False) as stack:
        stack.act(running["model"], "resume")
        assert stack.ended(running["model"])["status"] == "completed"
