from collections.abc import Iterator
from typing import Any

import pytest

from embedded.valkey import EmbeddedValkey
from tests.api.service import MOST_STREAMS, Json, Service, serving
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Stack


@pytest.fixture(scope="session")
def running_api(databases: Databases, template_database: str) -> Iterator[Service]:
    with (
        databases.new("api", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        serving(
            directory,
            url,
            valkey.url(),
            ASSAY_MAX_PLANNED_CALLS="200000",
            ASSAY_MAX_STREAMS=str(MOST_STREAMS),
        ) as service,
    ):
        yield service


@pytest.fixture
def api(running_api: Service) -> Service:
    """An API without jobs and without workers: what is submitted stays queued."""
    if any(running_api.rows().values()):
        running_api.empty("jobs", "calls", "verdicts", "grades", "uploads")
    return running_api


@pytest.fixture
def nothing_created(api: Service) -> Iterator[None]:
    """Fails a test after which there is a row."""
    yield
    assert set(api.rows().values()) == {0}


@pytest.fixture(scope="package")
def stack(common_stack: Stack, common_database: str) -> Iterator[Service]:
    """The whole service: API, worker, sweeper, simulator."""
    with common_stack.simulator_restored():
        common_stack.simulate(latency_ms=5)
        service = Service(str(common_stack.api.base_url).rstrip("/"), common_database)
        with service.http:
            yield service


@pytest.fixture(scope="session")
def finished_body() -> Json:
    """A job of two personas, one with two traits, three tasks, two models, two judges and two runs."""
    duo: dict[str, Any] = {
        "id": "duo",
        "description": "a warm but anxious neighbour",
        "traits": {"A": "high", "N": "low"},
    }
    return {
        "name": "two by two",
        "personas": ["E-low", duo],
        "tasks": ["questionnaire", "essay", "social_media_post"],
        "models": [
            "simulated/sim-faithful",
            {"model": "simulated/sim-refusing", "label": "shy", "attributes": {"caution": "high"}},
        ],
        "judges": ["simulated/sim-judge", "simulated/sim-judge-noisy"],
        "instructions": [1, 3],
        "iterations": 1,
        "metadata": {"kind": "finished"},
    }


@pytest.fixture(scope="package")
def finished(stack: Service, finished_body: Json) -> Json:
    """That job, completed."""
    job = stack.submit(finished_body)
    return stack.wait(job["id"], "completed", "failed", "cancelled")
