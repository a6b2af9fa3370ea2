"""A job under faults, what must hold of it in the end, and where the figures go."""

import fcntl
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.stack import TERMINAL, Json, judged_path
from tests.faults.program import PROJECT
from tests.faults.service import Service
from tests.observe import eventually

SEED_VARIABLE = "FAULT_SEED"
TIMES = int(os.environ.get("FAULT_TIMES", "20"))
"""How often the long forms strike; less than the promise for a first look."""
KILLS = TIMES * 5 // 2
CALLS = int(os.environ.get("FAULT_CALLS", "20000"))
"""About how many calls their jobs have."""

REPORT = PROJECT / "build" / "faults.json"

IN_FLIGHT = 16  # for each model and worker
MAX_UNWRITTEN = 16  # for each worker
MODELS = 3  # two that write, one that judges
AT_RISK = {"worker1": 1, "worker2": 1, "supervisor": 2}
"""Workers that lose what they have on the wire, or their leases, with a part. No other part's end costs a call."""

FINALIZER = "finalizer"
"""The worker that computes a job's results, when all its calls are made."""

JOB_SECONDS = 600.0
REST = 300
"""Calls; a job with fewer left may end before a fault strikes."""

COMPARED = ("completeness", "cells", "totals", "judges")


def seeded(default: int) -> tuple[int, random.Random]:
    """The seed of this run, printed, so that a run that failed can be had again, and what it draws."""
    seed = int(os.environ.get(SEED_VARIABLE, str(default)))
    print(f"{SEED_VARIABLE}={seed}")  # noqa: T201 - pytest shows it when the test fails
    return seed, random.Random(seed)


def a_while(draws: random.Random) -> int:
    """Calls until the next fault of a long job."""
    return draws.randint(CALLS // 200, CALLS // 7)


def identities(entries: list[Json]) -> Counter[str]:
    """How often each judgement and each text was asked for."""
    return Counter(judged_path(entry["request_id"]) for entry in entries)


@dataclass(frozen=True)
class Undisturbed:
    """What a job is when nothing happens to it."""

    job: Json
    results: Json
    calls: int


def undisturbed(service: Service, job: Json) -> Undisturbed:
    """Runs a job in peace."""
    service.simulate(latency_ms=0)
    job_id = service.submit(job)
    ended = service.ended(job_id, JOB_SECONDS)
    assert (ended["status"], ended["completeness"]) == ("completed", "full")
    entries = service.ledger(job_id)
    again = repeated(entries)
    assert not again, f"without faults calls were made for what others were made for too: {again}"
    return Undisturbed(job, service.results(job_id), len(identities(entries)))


def repeated(entries: list[Json]) -> list[str]:
    """Calls that were made for what others were made for too, and when (seconds since the first call)."""
    asked = identities(entries)
    start = min((entry["at"] for entry in entries), default=0.0)
    again = [entry for entry in entries if asked[judged_path(entry["request_id"])] > 1]
    return [f"{entry['request_id']} {entry['status']} at {entry['at'] - start:.2f}" for entry in again]


@dataclass
class Blow:
    """A fault that struck in mid-job."""

    part: str
    asked: Counter[str]
    kept: set[str]


@dataclass
class Trial:
    """One job under faults."""

    service: Service
    expected: Undisturbed
    job_id: str = ""
    received: int = 0
    blows: list[Blow] = field(default_factory=list)

    def submit(self, latency_ms: float) -> None:
        self.service.simulate(latency_ms=latency_ms)
        self.received = self.service.received()
        self.job_id = self.service.submit(self.expected.job)

    def running_after(self, calls: int, rest: int = REST) -> bool:
        """Waits for so many further calls; whether at least ``rest`` are left then, so that the job is struck in its middle."""
        target = self.service.received() + calls
        if target > self.received + self.expected.calls - rest:
            return False
        deadline = time.monotonic() + JOB_SECONDS
        while self.service.received() < target:
            assert time.monotonic() < deadline, f"the job stood still before {calls} further calls"
            if self._status() in TERMINAL:
                return False
            time.sleep(0.02)
        return self._status() not in TERMINAL

    def goes_on(self, calls: int, seconds: float) -> bool:
        """Whether so many further calls come in time, or the job ends with fewer."""
        target = self.service.received() + calls
        return eventually(lambda: self.service.received() >= target or self._status() in TERMINAL, seconds)

    def strike(self, part: str, act: Callable[[], None]) -> None:
        """Does something to a part, and keeps what was recorded and asked by then."""
        before = self.service.recorded(self.job_id)
        assert self._status() not in TERMINAL, "the fault came too late"
        act()
        kept = before if part in {"postgres", "supervisor"} else self.service.recorded(self.job_id)
        assert before <= kept
        self.blows.append(Blow(part, identities(self.service.ledger(self.job_id)), kept))

    def end(self, *, in_peace: bool = True, unwritten: int = 0) -> Json:
        """Waits for the job's end, checks it, and says what was measured.

        Args:
            in_peace: whether the provider answers at once from now on.
            unwritten: calls that each dead worker may have been kept from writing.
        """
        if in_peace:
            self.service.simulate(latency_ms=0)
        ended = self.service.ended(self.job_id, JOB_SECONDS)
        assert (ended["status"], ended["completeness"]) == ("completed", "full"), ended
        results = self.service.results(self.job_id)
        for part in COMPARED:
            assert results[part] == self.expected.results[part], part
        entries = self.service.ledger(self.job_id)
        asked = identities(entries)
        assert len(asked) == self.expected.calls
        assert asked.keys() <= self.service.recorded(self.job_id)  # a refusal's sentences take no call
        for blow in self.blows:
            left = asked.total() - blow.asked.total()
            assert left > 0 or blow.part == FINALIZER, f"nothing was left to do after {blow.part}"
            assert not (asked - blow.asked).keys() & blow.kept, (
                f"recorded before {blow.part}, asked for after it"
            )
        twice = asked.total() - len(asked)
        deaths = sum(AT_RISK.get(blow.part, 0) for blow in self.blows)
        # On the wire, and once as many for all that were on their way to disk at one of the deaths.
        limit = (deaths + bool(deaths)) * MODELS * IN_FLIGHT + deaths * unwritten
        assert twice <= limit, f"asked again: {repeated(entries)}"
        # Calls of a dead worker are recorded by nobody. A worker that thaws records those that couldn't connect; no provider saw them.
        used, unsent = ended["usage"]["calls"], self._unsent()
        assert asked.total() - twice <= used - unsent <= asked.total(), (used, unsent, asked.total(), twice)
        unanswered = sum(entry["answered"] is None for entry in entries)
        return {
            "calls": self.expected.calls,
            "faults": dict(Counter(blow.part for blow in self.blows)),
            "lost": 0,
            "asked_twice": twice,
            "of_them_unanswered": unanswered,
            "asked_twice_at_most": limit,
        }

    def _unsent(self) -> int:
        """Number of the job's recorded calls that found no connection."""
        with self.service.database() as connection:
            row = connection.execute(
                "SELECT count(*) FROM calls WHERE job_id = %s AND code = 'connection_failed' AND NOT maybe_paid",
                [self.job_id],
            ).fetchone()
        assert row is not None
        return int(row[0])

    def _status(self) -> str:
        with self.service.database() as connection:
            row = connection.execute("SELECT status FROM jobs WHERE id = %s", [self.job_id]).fetchone()
        assert row is not None
        return str(row[0])


def add_up(figures: list[Json]) -> Json:
    """The figures of several trials together."""
    faults: Counter[str] = Counter()
    for each in figures:
        faults.update(each["faults"])
    summed = {
        name: sum(each[name] for each in figures)
        for name in ("calls", "lost", "asked_twice", "of_them_unanswered", "asked_twice_at_most")
    }
    return {"jobs": len(figures), "faults": dict(faults), **summed}


def report(name: str, *, seed: int, n: int, of: int, **figures: object) -> None:
    """Writes what a test measured into `build/faults.json`, in place of what it said last."""
    REPORT.parent.mkdir(exist_ok=True)
    with Path(f"{REPORT}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {}
        found[name] = {
            "date": datetime.now(UTC).date().isoformat(),
            "seed": seed,
            "n": n,
            "of": of,
            **figures,
        }
        REPORT.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
