"""A capped key, a budget, and a megabyte of tools with each call: the whole service, against the provider's own ledger."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import yaml

from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER, KeyMaker, bearer
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, running_stack
from tests.integration.simulator.conftest import RunningSimulator

BUDGET = 0.4


@pytest.fixture(scope="module")
def keys(
    simulator: RunningSimulator, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> Iterator[tuple[Stack, KeyMaker]]:
    """A service with two connections to one dear provider: jobs may send tools by the one that is called `generous`."""
    prices = {name: {"input": 10.0, "output": 20.0} for name in ("sim-faithful", "sim-judge")}
    dear: Json = {
        "kind": "openai",
        "base_url": f"{simulator.url}/v1",
        "api_key_env": "PROVIDER_KEY",
        "prices": prices,
    }
    connections = {"dear": dear, "generous": dear | {"allow_extra": ["tools", "service_tier"]}}
    with databases.new("extra_e2e", template=template_database) as url, scratch_directory() as directory:
        config = directory / "assay.yaml"
        config.write_text(yaml.safe_dump({"connections": connections}))
        variables = {"ASSAY_CONFIG": str(config), "ASSAY_KEY_PEPPER": PEPPER, "PROVIDER_KEY": "any"}
        with running_stack(
            directory / "stack", database_url=url, redis_url=valkey.url(), environment=variables
        ) as run:
            yield run, KeyMaker(url)


@pytest.fixture
def stack(keys: tuple[Stack, KeyMaker]) -> Stack:
    """The service, asked with a new key that may spend $0.50."""
    stack, maker = keys
    stack.api.headers.update(bearer(maker.make(Scope.SUBMIT, Scope.READ, usd=0.5)))
    return stack


def submitted(stack: Stack, connection: str, characters: int) -> httpx2.Response:
    extra: dict[str, Any] = {"tools": [{"text": "x" * characters}], "service_tier": "priority"}
    model = {"model": f"{connection}/sim-faithful", "max_tokens": 100, "extra": extra}
    body = {
        "personas": ["E-high"],
        "tasks": ["social_media_post"],
        "models": [model],
        "judges": [{"model": "dear/sim-judge", "max_tokens": 20}],
        "instructions": [1],
        "iterations": 30,
        "budget": {"usd": BUDGET},
    }
    return stack.api.post("/v1/jobs", json=body)


def calls_of(simulator: RunningSimulator, job_id: str) -> list[Json]:
    return [entry for entry in simulator.ledger() if str(entry["request_id"]).startswith(f"{job_id}/")]


def test_tools_and_tiers_are_refused_and_nothing_is_called(stack: Stack, simulator: RunningSimulator) -> None:
    answer = submitted(stack, "dear", 1_000_000)
    assert answer.status_code == 422
    places = [error["pointer"] for error in answer.json()["errors"]]
    assert places == ["/models/0/extra/tools", "/models/0/extra/service_tier"]
    assert simulator.ledger() == []


def test_a_megabyte_that_is_allowed_is_more_than_the_budget_and_not_sent(
    stack: Stack, simulator: RunningSimulator
) -> None:
    answer = submitted(stack, "generous", 1_000_000)
    assert answer.status_code == 202, answer.text
    job = stack.until(answer.json()["id"], lambda job: job["status"] == "paused")
    assert job["status_reason"] == "budget_exhausted"
    assert calls_of(simulator, job["id"]) == []


def test_what_is_allowed_and_fits_is_spent_up_to_the_budget_and_no_further(
    stack: Stack, simulator: RunningSimulator
) -> None:
    answer = submitted(stack, "generous", 4_000)
    assert answer.status_code == 202, answer.text
    job = stack.until(answer.json()["id"], lambda job: job["status"] == "paused")
    assert job["status_reason"] == "budget_exhausted"
    calls = calls_of(simulator, job["id"])
    # A text is reckoned with $0.05 and costs $0.01: at $10 per million tokens, a quarter of a token for a character.
    assert len([call for call in calls if call["model"] == "sim-faithful"]) > 20
    assert job["usage"]["calls"] == len(calls)
    assert BUDGET - 0.06 < job["budget"]["usd"]["spent"] <= BUDGET
