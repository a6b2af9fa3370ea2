"""Jobs with budgets at providers that lie about their bills, through the whole service, while its worker is killed."""

import json
from collections.abc import Iterator

import pytest

from app.domain.jobs.budget import NANOS, nanos_of
from app.domain.providers.model import Usage
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import TERMINAL, Json, Stack, connected_stack
from tests.faults.providers import Providers
from tests.integration.llm.stub_provider import Answer
from tests.integration.services.execution.test_lying_providers import LIES, PRICES, told
from tests.observe import eventually

IN_FLIGHT = 6
HONEST = 12
"""Calls that a provider answers honestly before it lies."""
KILLS = 2
USD = 0.5
PATIENCE = 270.0
NAMES = {f"p{number}": name for number, name in enumerate(LIES) if name != "rate limit"}
"""The connection of each provider."""
JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["questionnaire"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1, 2, 3],
    "iterations": 10,
    "budget": {"usd": USD},
}
"""300 texts, of which the budget pays for some 35."""


class Charges:
    """What a provider charged for, in billionths of a dollar."""

    def __init__(self) -> None:
        self.calls = self.nanos = self.largest = 0


class Charging(Providers):
    """Counts what each provider charged."""

    def __init__(self) -> None:
        super().__init__()
        self.charged = {name: Charges() for name in NAMES}

    def answer(self, connection: str, body: bytes) -> Answer:
        charges = self.charged[connection]
        worst = Usage(len(body), json.loads(body).get("max_tokens", 0))
        with self._lock:
            charges.calls += 1
            answer, bill, cost = LIES[NAMES[connection]](worst, charges.calls)
            if charges.calls <= HONEST:
                answer, bill, cost = told(worst), worst, 0.0
            usd = bill.input_tokens * PRICES.input / 1e6 + bill.output_tokens * PRICES.output / 1e6
            charges.nanos += nanos_of(max(usd, cost))
            charges.largest = max(charges.largest, nanos_of(max(usd, cost)))
        return answer

    @property
    def calls(self) -> int:
        """Calls to all providers so far."""
        return sum(charges.calls for charges in self.charged.values())


@pytest.fixture(scope="module")
def providers() -> Iterator[Charging]:
    with Charging().serving() as server:
        yield server


@pytest.fixture(scope="module")
def stack(providers: Charging, databases: Databases, template_database: str) -> Iterator[Stack]:
    prices = {"writer": {"input": PRICES.input, "output": PRICES.output}}
    connections = providers.connections(NAMES, prices=prices)
    variables = {
        "PROVIDER_KEY": "any",
        "ASSAY_MAX_IN_FLIGHT": str(IN_FLIGHT),
        "ASSAY_LEASE_SECONDS": "2",
        "ASSAY_SWEEP_SECONDS": "0.3",
    }
    with (
        scratch_directory() as directory,
        connected_stack(connections, directory, databases, template_database, **variables) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def jobs(stack: Stack, providers: Charging) -> dict[str, Json]:
    """A job of each provider, all at the same time, as it stands when it makes no more calls."""
    ids = {}
    for name in NAMES:
        model = {"model": f"{name}/writer", "max_tokens": 1_000}
        ids[name] = stack.submit(JOB | {"models": [model]})
    for kill in range(1, KILLS + 1):
        assert eventually(lambda: providers.calls >= kill * len(NAMES) * HONEST, PATIENCE)  # noqa: B023
        worker = stack.pid("worker1")
        stack.kill("worker1")
        stack.restarted("worker1", worker)
    stands = {*TERMINAL, "paused"}
    return {
        name: stack.until(id_, lambda job: job["status"] in stands, PATIENCE) for name, id_ in ids.items()
    }


@pytest.mark.parametrize("connection", NAMES, ids=NAMES.values())
def test_a_budget_is_exceeded_by_few_calls_at_most_and_the_job_says_so(
    connection: str, providers: Charging, jobs: dict[str, Json]
) -> None:
    job, charges = jobs[connection], providers.charged[connection]
    assert charges.calls > HONEST
    assert (job["status"], job["status_reason"]) in {
        ("paused", "budget_exhausted"),
        ("paused", "bound_exceeded"),
    }
    # Bills beyond the worst case are lost with a worker that is killed.
    beyond = (IN_FLIGHT + 2 + KILLS * IN_FLIGHT) * charges.largest
    assert charges.nanos <= USD * NANOS + beyond
    shown = job["budget"]["usd"]
    lost = KILLS * IN_FLIGHT * charges.largest
    assert (shown["spent"] + shown["reserved"]) * NANOS >= charges.nanos - lost


def test_no_job_goes_on_by_itself(stack: Stack, providers: Charging, jobs: dict[str, Json]) -> None:
    before = providers.calls
    assert not eventually(lambda: providers.calls > before, 2.0)
    assert all(stack.job(job["id"])["status"] == "paused" for job in jobs.values())
