"""What is paid twice when workers are killed, by the provider's own record, at the settings that are the default.

Its short form, with a database that stands still, is in `test_survival.py`.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from app.settings import Settings
from tests.conftest import scratch_directory
from tests.e2e.stack import TERMINAL, Json, judged_path
from tests.faults.conftest import JOB
from tests.faults.service import Service, running_service
from tests.faults.trial import (
    COMPARED,
    JOB_SECONDS,
    KILLS,
    MODELS,
    Undisturbed,
    identities,
    report,
    seeded,
    undisturbed,
)
from tests.observe import eventually

LATENCY_MS, JITTER_MS = 300.0, 200.0
ENVIRONMENT = {"ASSAY_LEASE_SECONDS": "5", "ASSAY_SWEEP_SECONDS": "0.5"}
LARGE_JOB = JOB | {"iterations": 29}
"""16,000 calls."""
FEWEST_BETWEEN, MOST_BETWEEN = 100, 2_500
"""Calls from one kill to the next."""
ARRIVING_SECONDS = 1.0
"""What a worker sent before it died may be read so much later."""


class Kill(NamedTuple):
    """A worker's end, at a moment on the clock of the provider's record."""

    worker: str
    at: float


class Cost(NamedTuple):
    """The calls of a killed worker that were made again: those on the wire, and those answered before."""

    on_the_wire: int
    answered: int


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """Two workers as they are by default, at a provider without limits."""
    with scratch_directory() as directory, running_service(directory, ENVIRONMENT) as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_fifty_kills_cost_less_than_twice_what_was_on_the_wire(service: Service) -> None:
    seed, draws = seeded(16)
    expected = undisturbed(service, LARGE_JOB)
    found: list[Cost] = []
    jobs = 0
    while len(found) < KILLS:
        found += _job_under_kills(service, expected, draws, KILLS - len(found))
        jobs += 1
    wire, twice = sum(cost.on_the_wire for cost in found), sum(map(sum, found))
    most = MODELS * Settings().max_in_flight + Settings().max_unwritten
    report(
        "cost of kills",
        seed=seed,
        n=len(found),
        of=50,
        jobs=jobs,
        calls=expected.calls,
        on_the_wire=wire,
        asked_twice=twice,
        most_of_one_kill=max(map(sum, found)),
        most_allowed=most,
    )
    assert max(map(sum, found)) <= most
    assert twice <= 2 * wire


def _job_under_kills(service: Service, expected: Undisturbed, draws: random.Random, most: int) -> list[Cost]:
    """What each kill in a job cost, which ends as if there had been none."""
    service.simulate(latency_ms=LATENCY_MS, jitter_ms=JITTER_MS)
    last = service.received() + expected.calls - FEWEST_BETWEEN
    job_id = service.submit(expected.job)
    kills: list[Kill] = []
    while len(kills) < most:
        target = service.received() + draws.randint(FEWEST_BETWEEN, MOST_BETWEEN)
        if target > last or not _reached(service, job_id, target):
            break
        if workers := _at_work(service):
            kills.append(Kill(draws.choice(workers), time.monotonic()))
            service.kill(kills[-1].worker)
    service.simulate(latency_ms=0, jitter_ms=0)
    ended = service.ended(job_id, JOB_SECONDS)
    assert (ended["status"], ended["completeness"]) == ("completed", "full")
    results = service.results(job_id)
    for part in COMPARED:
        assert results[part] == expected.results[part], part
    entries = service.ledger(job_id)
    assert len(identities(entries)) == expected.calls
    return _costs(entries, kills)


def _reached(service: Service, job_id: str, received: int) -> bool:
    """Whether so many calls come before the job ends."""
    assert eventually(
        lambda: service.received() >= received or service.job(job_id)["status"] in TERMINAL, JOB_SECONDS
    )
    return service.received() >= received


def _at_work(service: Service) -> list[str]:
    """The workers that hold shards."""
    with service.database() as connection:
        rows = connection.execute(
            "SELECT DISTINCT lease_owner FROM shards WHERE NOT done AND lease_expires_at > clock_timestamp()"
        ).fetchall()
    holders = {int(owner.rpartition(":")[2]) for (owner,) in rows}
    pids = service.program.pids()
    return sorted(part for part, pid in pids.items() if part.startswith("worker") and pid in holders)


def _costs(entries: list[Json], kills: list[Kill]) -> list[Cost]:
    """What each kill cost: of the calls that were made more than once, all but the last."""
    asked, lost = identities(entries), []
    for entry in sorted(entries, key=lambda entry: float(entry["at"])):
        path = judged_path(entry["request_id"])
        asked[path] -= 1
        if asked[path]:
            lost.append(entry)
    of_kill: dict[Kill, Counter[bool]] = {kill: Counter() for kill in kills}
    for entry in lost:
        kill = next((kill for kill in kills if entry["at"] <= kill.at + ARRIVING_SECONDS), None)
        assert kill is not None, f"made twice, and no worker was killed after it: {entry}"
        of_kill[kill][entry["ended"] > kill.at] += 1
    return [Cost(found[True], found[False]) for found in of_kill.values()]
