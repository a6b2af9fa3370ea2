"""Jobs with budgets at providers that lie about their bills, through the whole service, while its worker is killed."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from app.domain.jobs.budget import NANOS, Amount, nanos_of
from app.domain.providers.model import Usage
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import TERMINAL, Json, Stack, connected_stack
from tests.faults.providers import Providers
from tests.faults.trial import report
from tests.integration.llm.stub_provider import Answer
from tests.integration.services.execution.test_lying_providers import LIES, PRICES, told
from tests.observe import eventually

IN_FLIGHT = 6
HONEST = 12
"""Calls that a provider answers honestly before it lies."""
KILLS = 2
BUDGETS = {"usd": 0.5, "tokens": 90_000, "calls": 36}
"""Each pays for some 35 honest calls."""
MOST_OVER = IN_FLIGHT + 2 + KILLS * IN_FLIGHT
"""Largest bills: of the calls in flight at the first lie, of two more, and of those in flight when a worker was killed."""
PATIENCE = 270.0
JOB: Json = {
    "personas": ["E-high"],
    "tasks": ["questionnaire"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1, 2, 3],
    "iterations": 10,
}
"""300 texts."""


class Trial(NamedTuple):
    """A provider, and the kind of budget that its job has."""

    lie: str
    budget: str

    @property
    def connection(self) -> str:
        return f"p{list(LIES).index(self.lie)}{self.budget}"


NAMES = [name for name in LIES if name != "rate limit"]
SHORT = [
    *(Trial(name, "usd") for name in NAMES),
    *(Trial(name, "tokens") for name in NAMES[::4]),
    *(Trial(name, "calls") for name in NAMES[::8]),
]
ALL = [Trial(name, budget) for name in NAMES for budget in BUDGETS]
LIE_OF = {trial.connection: trial.lie for trial in ALL}


class Charges:
    """What a provider charged for, and its largest bill."""

    def __init__(self) -> None:
        self.all = self.largest = Amount()


class Charging(Providers):
    """Counts what each provider charged."""

    def __init__(self) -> None:
        super().__init__()
        self.charged = {name: Charges() for name in LIE_OF}

    def answer(self, connection: str, body: bytes) -> Answer:
        charges = self.charged[connection]
        worst = Usage(len(body), json.loads(body).get("max_tokens", 0))
        with self._lock:
            number = charges.all.calls + 1
            answer, bill, cost = LIES[LIE_OF[connection]](worst, number)
            if number <= HONEST:
                answer, bill, cost = told(worst), worst, 0.0
            usd = bill.input_tokens * PRICES.input / 1e6 + bill.output_tokens * PRICES.output / 1e6
            charged = Amount(1, bill.input_tokens + bill.output_tokens, nanos_of(max(usd, cost)))
            charges.all += charged
            charges.largest = charges.largest.at_least(charged)
        return answer

    @property
    def calls(self) -> int:
        """Calls to all providers so far."""
        return sum(charges.all.calls for charges in self.charged.values())


@pytest.fixture(scope="module")
def providers() -> Iterator[Charging]:
    with Charging().serving() as server:
        yield server


@pytest.fixture(scope="module")
def stack(providers: Charging, databases: Databases, template_database: str) -> Iterator[Stack]:
    prices = {"writer": {"input": PRICES.input, "output": PRICES.output}}
    connections = providers.connections({name: name for name in LIE_OF}, prices=prices)
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


def stand_still(stack: Stack, providers: Charging, trials: list[Trial]) -> dict[Trial, Json]:
    """A job of each provider, all at the same time, as it stands when it makes no more calls."""
    ids = {}
    for trial in trials:
        model = {"model": f"{trial.connection}/writer", "max_tokens": 1_000}
        budget = {trial.budget: BUDGETS[trial.budget]}
        ids[trial] = stack.submit(JOB | {"models": [model], "budget": budget})
    before = providers.calls
    for kill in range(1, KILLS + 1):
        assert eventually(lambda: providers.calls - before >= kill * len(trials) * HONEST, PATIENCE)  # noqa: B023
        worker = stack.pid("worker1")
        stack.kill("worker1")
        stack.restarted("worker1", worker)
    stands = {*TERMINAL, "paused"}
    return {
        trial: stack.until(id_, lambda job: job["status"] in stands, PATIENCE) for trial, id_ in ids.items()
    }


def charged_beyond(limit: float, trial: Trial, charges: Charges) -> float:
    """What was charged beyond a limit, in the provider's largest bills."""
    charged, largest = {
        "usd": (charges.all.nanos / NANOS, charges.largest.nanos / NANOS),
        "tokens": (charges.all.tokens, charges.largest.tokens),
        "calls": (charges.all.calls, 1),
    }[trial.budget]
    return round(max(0.0, charged - limit) / largest, 2)


@pytest.mark.parametrize("trials", [SHORT, pytest.param(ALL, marks=pytest.mark.long)], ids=["short", "all"])
def test_budgets_are_exceeded_by_few_calls_at_most_and_the_jobs_say_so(
    trials: list[Trial], stack: Stack, providers: Charging
) -> None:
    jobs = stand_still(stack, providers, trials)
    figures: dict[str, dict[str, float]] = {}
    wrong: dict[Trial, object] = {}
    for trial, job in jobs.items():
        charges = providers.charged[trial.connection]
        shown = job["budget"][trial.budget]
        over = charged_beyond(BUDGETS[trial.budget], trial, charges)
        hidden = charged_beyond(shown["spent"] + shown["reserved"], trial, charges)
        figures.setdefault(trial.lie, {})[trial.budget] = over
        state = (job["status"], job["status_reason"])
        most = 0 if trial.budget == "calls" else MOST_OVER
        if (
            charges.all.calls <= HONEST
            or state not in {("paused", "budget_exhausted"), ("paused", "bound_exceeded")}
            or over > most
            or hidden > KILLS * IN_FLIGHT  # bills beyond the worst case are lost with a worker that is killed
        ):
            wrong[trial] = (state, charges.all.calls, over, hidden, job["error"])
    report("money" if trials is SHORT else "money_all", seed=0, n=len(trials), of=len(ALL), overshoot=figures)
    assert not wrong
    before = providers.calls
    assert not eventually(lambda: providers.calls > before, 2.0)
    assert all(stack.job(job["id"])["status"] == "paused" for job in jobs.values())  # none goes on by itself
