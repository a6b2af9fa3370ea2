"""Parts of a whole service die, freeze and come back in mid-job; its job ends as if they had not.

Each test has a short form and a long one (`make test-long`); both write what they measured into `build/faults.json`.
"""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx2
import pytest
import redis

from app.db.migration.migrate import migrate_to
from embedded.services import WORKER_GRACE
from tests.conftest import scratch_directory
from tests.e2e.stack import Json
from tests.faults.conftest import JOB
from tests.faults.service import Service, running_service
from tests.faults.trial import (
    CALLS,
    COMPARED,
    FINALIZER,
    IN_FLIGHT,
    JOB_SECONDS,
    KILLS,
    MAX_UNWRITTEN,
    TIMES,
    Trial,
    Undisturbed,
    a_while,
    add_up,
    identities,
    report,
    seeded,
    undisturbed,
)
from tests.next_release import NEXT, THIS, next_release
from tests.observe import alive, eventually

LATENCY_MS = 150.0
"""With the calls in flight, some 200 a second at most, however fast the machine: the job lasts while faults strike."""

ENVIRONMENT = {
    "ASSAY_MAX_IN_FLIGHT": str(IN_FLIGHT),
    "ASSAY_MAX_UNWRITTEN": str(MAX_UNWRITTEN),
    "ASSAY_LEASE_SECONDS": "10",
    "ASSAY_SWEEP_SECONDS": "0.5",
}
TAKEN_SECONDS = 240.0
"""A worker that is frozen in mid-transaction keeps its locks until Postgres ends the transaction, after a minute."""

MEDIUM_JOB = JOB | {"iterations": 8}
LONG_JOB = JOB | {"iterations": max(1, CALLS // 600)}

ANSWER_SECONDS = 5.0
RESUMED_SECONDS = 30.0
SLACK = 6.0
"""A short form runs wherever `make test-slow` does, so that its clocks are this much more patient than the promise."""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """A service with databases of its own."""
    with scratch_directory() as directory, running_service(directory, ENVIRONMENT) as running:
        yield running


@pytest.fixture(scope="module")
def short(service: Service) -> Undisturbed:
    """A job of 1,800 calls in peace."""
    return undisturbed(service, JOB)


@pytest.fixture(scope="module")
def medium(service: Service) -> Undisturbed:
    """A job of 4,500 calls in peace."""
    return undisturbed(service, MEDIUM_JOB)


@pytest.fixture(scope="module")
def whole(service: Service) -> Undisturbed:
    """The long job in peace."""
    return undisturbed(service, LONG_JOB)


@pytest.fixture
def trial(service: Service, short: Undisturbed) -> Iterator[Trial]:
    """The short job, running."""
    service.settled()
    made = Trial(service, short)
    made.submit(LATENCY_MS)
    yield made
    service.program.crash_file.unlink(missing_ok=True)
    service.simulate(latency_ms=0)


def kill(trial: Trial, part: str) -> None:
    """Kills a part; nobody else starts the supervisor again."""
    if part == "supervisor":
        trial.strike(part, trial.service.program.kill)
        trial.service.program.start()
    else:
        trial.strike(part, lambda: trial.service.kill(part))


class TestKills:
    def test_whatever_is_killed_the_job_ends_as_undisturbed(self, trial: Trial) -> None:
        seed, random = seeded(1)
        victims = ["worker1", "api", "sweeper", "supervisor"]
        random.shuffle(victims)
        for victim in victims:
            assert trial.running_after(random.randint(30, 150))
            kill(trial, victim)
        figures = trial.end()
        report("kills, short", seed=seed, n=len(victims), of=len(victims), **figures)

    def test_a_worker_killed_while_the_database_stands_still_costs_no_more_than_its_bound(
        self, service: Service, trial: Trial
    ) -> None:
        for worker in ("worker1", "worker2"):
            service.settled()
            assert trial.running_after(60)
            trial.strike(worker, partial(kill_with_unwritten_calls, service, worker))
        report("cost of kills, short", seed=0, n=2, of=2, **trial.end(unwritten=MAX_UNWRITTEN))

    @pytest.mark.long
    @pytest.mark.timeout(4 * 3600)
    def test_fifty_times_over_long_jobs(self, service: Service, whole: Undisturbed) -> None:
        seed, random = seeded(1)
        struck, done = 0, []
        while struck < KILLS:
            trial = Trial(service.settled(), whole)
            trial.submit(LATENCY_MS)
            while struck < KILLS and trial.running_after(a_while(random)):
                part = random.choice(["api", "worker1", "worker2", "sweeper", "supervisor"])
                if part in service.program.pids() or part == "supervisor":
                    kill(trial, part)
                    struck += 1
            done.append(trial.end())
        report("kills", seed=seed, n=struck, of=50, **add_up(done))


def kill_with_unwritten_calls(service: Service, worker: str) -> None:
    """Kills a worker once no more calls come, as nothing can be written."""
    with service.frozen("postgres"):
        received = -1
        while received < (received := service.received()):
            time.sleep(1)
        service.kill(worker)


POINTS = (
    *(("claim", moment) for moment in ("before", "after")),
    *(("row", moment) for moment in ("before", "after")),
    *(("send", moment) for moment in ("before", "after")),
    *(("receive", moment) for moment in ("before", "after")),
    *(("commit", moment) for moment in ("before", "after")),
    *(("end", moment) for moment in ("before", "within", "after")),
    *(("refill", moment) for moment in ("before", "within", "after")),
    *(("finalize", moment) for moment in ("before", "within", "after")),
)
"""`within`: in the transaction, before it is committed. A claim is a single statement."""

PASSAGES = {
    "claim": 3,
    "row": 100,
    "send": 100,
    "receive": 100,
    "commit": 20,
    "end": 2,
    "refill": 2,
    "finalize": 1,
}
"""Fewer than are left, for one of two workers, with :data:`REST_OF_MEDIUM` calls to make, or :data:`REST_WITH_CLAIMS`."""
REST_OF_MEDIUM = 1_200
REST_WITH_CLAIMS = 8_000
"""More shards than two workers hold at a time, so that some are still to be claimed."""


class TestCrashPoints:
    def test_a_worker_that_dies_there_costs_at_most_what_was_in_flight(self, trial: Trial) -> None:
        seed, random = seeded(2)
        points = [("send", "after"), ("end", "within"), ("finalize", "within")]
        for point, moment in points:
            self._crash(trial, point, moment, random.randint(1, min(3, PASSAGES[point])))
        report("crash points, short", seed=seed, n=len(points), of=len(points), **trial.end())

    @pytest.mark.long
    @pytest.mark.timeout(6 * 3600)
    @pytest.mark.parametrize(("point", "moment"), POINTS)
    def test_twenty_times_each(
        self,
        service: Service,
        short: Undisturbed,
        medium: Undisturbed,
        whole: Undisturbed,
        point: str,
        moment: str,
    ) -> None:
        """Workers die one after the other, also while the last one starts again. A job is finalized once only."""
        seed, random = seeded(2)
        job = {"finalize": short, "claim": whole}.get(point, medium)
        rest = REST_WITH_CLAIMS if point == "claim" else REST_OF_MEDIUM
        struck, done = 0, []
        while struck < TIMES:
            trial = Trial(service.settled(), job)
            trial.submit(LATENCY_MS)
            while struck < TIMES and trial.running_after(random.randint(20, 200), rest=rest):
                self._crash(trial, point, moment, random.randint(1, PASSAGES[point]))
                struck += 1
                if point == "finalize":
                    break
            done.append(trial.end())
        report(f"crash point: {moment} {point}", seed=seed, n=struck, of=20, **add_up(done))

    @staticmethod
    def _crash(trial: Trial, point: str, moment: str, n: int) -> None:
        """One of the workers dies; which of them shows when it is started again."""
        service = trial.service
        if point == "finalize":
            service.simulate(latency_ms=0)

        def crash() -> None:
            service.arm(point, moment, n)
            assert service.crashed(120), f"nobody passed {moment} {point}"

        trial.strike(FINALIZER if point == "finalize" else "worker1", crash)


class TestFollowUps:
    def test_a_worker_that_dies_before_one_pays_no_unreadable_reply_again(self, service: Service) -> None:
        job = SMALL | {"judges": ["simulated/sim-judge-noisy"], "iterations": 40}
        expected = undisturbed(service.settled(), job)
        assert expected.results["repairs"][0]["repaired"] > 0
        service.simulate(latency_ms=30)
        service.arm("follow-up", "before", 1)
        job_id = service.submit(job)
        assert service.crashed(120)
        with service.database() as connection:
            kept = {path for (path,) in connection.execute("SELECT path FROM unread_replies")}
        service.simulate(latency_ms=0)
        ended = service.settled().ended(job_id, JOB_SECONDS)
        assert (ended["status"], ended["completeness"]) == ("completed", "full")
        asked, results = identities(service.ledger(job_id)), service.results(job_id)
        assert kept
        assert {asked[path] for path in kept} == {1}
        assert len(asked) == expected.calls
        for part in (*COMPARED, "repairs"):
            assert results[part] == expected.results[part], part


class TestRedis:
    def test_a_frozen_redis_lets_no_call_out_and_nobody_wait(self, trial: Trial) -> None:
        assert trial.running_after(200)
        figures = freeze_redis(trial, seconds=8.0, slack=SLACK)
        assert trial.running_after(50)
        trial.strike("valkey", lambda: trial.service.kill("valkey"))
        started = time.monotonic()
        assert trial.running_after(20)
        assert time.monotonic() - started < RESUMED_SECONDS * SLACK
        report("redis, short", seed=0, n=2, of=2, **trial.end(), **figures)

    @pytest.mark.long
    @pytest.mark.timeout(3 * 3600)
    @pytest.mark.parametrize("fault", ["flushall", "sigkill", "sigstop"])
    def test_twenty_of_each(self, service: Service, whole: Undisturbed, fault: str) -> None:
        seed, random = seeded(3)
        struck, done = 0, []
        slowest: dict[str, float] = {}
        while struck < TIMES:
            trial = Trial(service.settled(), whole)
            trial.submit(LATENCY_MS)
            while struck < TIMES and trial.running_after(a_while(random)):
                measured = self._strike(trial, fault)
                slowest = {name: max(value, slowest.get(name, 0.0)) for name, value in measured.items()}
                struck += 1
            done.append(trial.end())
        report(f"redis: {fault}", seed=seed, n=struck, of=20, **add_up(done), **slowest)

    @staticmethod
    def _strike(trial: Trial, fault: str) -> dict[str, float]:
        if fault == "sigstop":
            return freeze_redis(trial, seconds=60.0, slack=1.0)
        if fault == "flushall":
            return flush_redis(trial)
        trial.strike("valkey", lambda: trial.service.kill("valkey"))
        return {"resumed_after_seconds": resumed(trial, 1.0)}


def flush_redis(trial: Trial) -> dict[str, float]:
    """Empties Redis; how long it took until the last message that was lost with it had been sent again, or needed no more."""
    waiting = trial.service.waiting_shards(trial.job_id)
    with redis.Redis.from_url(trial.service.program.redis_url()) as client:
        trial.strike("valkey", client.flushall)
    started = time.monotonic()
    assert eventually(lambda: not waiting & trial.service.waiting_shards(trial.job_id), RESUMED_SECONDS), (
        "messages that were lost were not sent again"
    )
    return {"messages_back_after_seconds": round(time.monotonic() - started, 2), "messages": len(waiting)}


def freeze_redis(trial: Trial, *, seconds: float, slack: float) -> dict[str, float]:
    """Freezes Redis, asks and submits meanwhile; how long the answers took, and the first call after it."""
    service = trial.service
    with service.frozen("valkey"):
        until = time.monotonic() + seconds
        trial.strike("valkey", lambda: None)
        waits = [timed(service, "GET", f"/v1/jobs/{trial.job_id}"), timed(service, "POST", "/v1/jobs")]
        time.sleep(3)  # what the limiter had let go is out by now
        received = service.received()
        time.sleep(max(1.0, until - time.monotonic()))
        assert service.received() == received, "calls went out without the limiter"
    resumed_after = resumed(trial, slack)
    assert max(waits) < ANSWER_SECONDS * slack
    return {"slowest_answer_seconds": round(max(waits), 2), "resumed_after_seconds": resumed_after}


SMALL: Json = {
    "personas": ["E-high"],
    "tasks": ["essay"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 1,
}


def timed(service: Service, verb: str, path: str) -> float:
    """Seconds until an answer came, which is one or says that a part is away."""
    started = time.monotonic()
    answer = service.api.request(verb, path, json=SMALL if verb == "POST" else None)
    assert answer.status_code in {200, 202, 503}, answer.text
    return time.monotonic() - started


def resumed(trial: Trial, slack: float) -> float:
    """Seconds until further calls came."""
    started = time.monotonic()
    assert trial.goes_on(30, RESUMED_SECONDS * slack)
    return round(time.monotonic() - started, 2)


class TestPostgres:
    def test_an_immediate_restart_loses_nothing_and_a_frozen_one_hangs_nobody(
        self, service: Service, trial: Trial
    ) -> None:
        assert trial.running_after(200)
        restart(trial)
        assert trial.running_after(100)
        kept = service.recorded(trial.job_id)
        with service.frozen("postgres"), ThreadPoolExecutor(2) as threads:
            paths = (f"/v1/jobs/{trial.job_id}", "/readyz")
            asked = [threads.submit(httpx2.get, f"{service.program.api}{path}", timeout=60) for path in paths]
            assert [each.result().status_code for each in asked] == [503, 503]  # before it is thawed
        assert service.recorded(trial.job_id) >= kept
        report("postgres, short", seed=0, n=1, of=1, **trial.end())

    @pytest.mark.long
    @pytest.mark.timeout(2 * 3600)
    def test_twenty_immediate_restarts(self, service: Service, whole: Undisturbed) -> None:
        seed, random = seeded(4)
        struck, done = 0, []
        while struck < TIMES:
            trial = Trial(service.settled(), whole)
            trial.submit(LATENCY_MS)
            while struck < TIMES:
                time.sleep(random.uniform(5, 40))
                if not trial.running_after(10):
                    break
                restart(trial)
                struck += 1
            done.append(trial.end())
        report("postgres: restart -m immediate", seed=seed, n=struck, of=20, **add_up(done))


def restart(trial: Trial) -> None:
    """What `pg_ctl restart -m immediate` does; afterwards all is there that had been acknowledged."""
    service = trial.service
    former = service.pid("postgres")
    trial.strike("postgres", lambda: service.signal("postgres", signal.SIGQUIT))
    service.restarted("postgres", former)
    assert eventually(service.program._ready, 60)
    assert service.recorded(trial.job_id) >= trial.blows[-1].kept


class TestStaleOwner:
    def test_a_worker_frozen_past_its_leases_spoils_nothing(self, trial: Trial) -> None:
        """The second worker's clock is an hour ahead, here and in all tests of this module."""
        assert trial.running_after(200)
        trial.strike("worker1", lambda: freeze_past_lease(trial, "worker1"))
        report("frozen lease holder, short", seed=0, n=1, of=1, **trial.end())

    @pytest.mark.long
    @pytest.mark.timeout(2 * 3600)
    def test_twenty_times(self, service: Service, whole: Undisturbed) -> None:
        seed, random = seeded(6)
        struck, done = 0, []
        while struck < TIMES:
            trial = Trial(service.settled(), whole)
            trial.submit(LATENCY_MS)
            while struck < TIMES and trial.running_after(a_while(random)):
                part = random.choice(["worker1", "worker2"])
                trial.strike(part, partial(freeze_past_lease, trial, part))
                struck += 1
            done.append(trial.end())
        report("frozen lease holder", seed=seed, n=struck, of=20, **add_up(done))


def holder_of(trial: Trial, part: str) -> str:
    """What the names of the part's leases are like, for SQL."""
    return f"%:{trial.service.pid(part)}"


def held_by(trial: Trial, part: str) -> list[int]:
    """The shards of the job that the part works on."""
    with trial.service.database() as connection:
        rows = connection.execute(
            "SELECT id FROM shards WHERE job_id = %s AND NOT done AND lease_owner LIKE %s",
            [trial.job_id, holder_of(trial, part)],
        ).fetchall()
    return [shard_id for (shard_id,) in rows]


def freeze_past_lease(trial: Trial, part: str) -> None:
    """Until somebody else has claimed all that the frozen one held. A worker that has just thawed has to claim something first."""
    assert eventually(lambda: bool(held_by(trial, part)), TAKEN_SECONDS)
    with trial.service.frozen(part), trial.service.database() as connection:
        held = held_by(trial, part)
        assert held

        def taken() -> bool:
            row = connection.execute(
                "SELECT count(*) FROM shards WHERE id = ANY(%s) AND NOT done AND lease_owner LIKE %s",
                [held, holder_of(trial, part)],
            ).fetchone()
            return row == (0,)

        assert eventually(taken, TAKEN_SECONDS)


class TestShutdown:
    def test_sigterm_under_load_loses_and_repeats_nothing(self, trial: Trial) -> None:
        assert trial.running_after(200)
        took = stop_worker(trial, "worker1")
        figures = trial.end()
        assert figures["asked_twice"] == 0
        report("sigterm, short", seed=0, n=1, of=1, **figures, slowest_exit_seconds=took)

    def test_sigterm_with_calls_that_hang_leaves_them_within_the_grace_and_accounts_for_them(
        self, service: Service, trial: Trial
    ) -> None:
        assert trial.running_after(100)
        service.simulate(latency_ms=120_000)
        time.sleep(1)
        stop_worker(trial, "worker2")
        with service.database() as connection:
            abandoned = connection.execute(
                "SELECT count(*) FILTER (WHERE code = 'abandoned' AND maybe_paid) FROM calls"
                " JOIN shards ON shards.id = shard_id WHERE shards.job_id = %s",
                [trial.job_id],
            ).fetchone()
        assert abandoned is not None
        assert 0 < abandoned[0] <= 3 * IN_FLIGHT
        service.kill("worker1")  # its calls would hang for two minutes
        service.simulate(latency_ms=0)
        assert service.ended(trial.job_id)["completeness"] == "full"

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    def test_twenty_times(self, service: Service, whole: Undisturbed) -> None:
        seed, random = seeded(12)
        struck, done, exits = 0, [], []
        while struck < TIMES:
            trial = Trial(service.settled(), whole)
            trial.submit(LATENCY_MS)
            while struck < TIMES and trial.running_after(a_while(random)):
                service.settled()
                exits.append(stop_worker(trial, random.choice(["worker1", "worker2"])))
                struck += 1
            done.append(trial.end())
        figures = add_up(done)
        assert figures["asked_twice"] == 0
        assert max(exits) <= WORKER_GRACE
        report("sigterm", seed=seed, n=struck, of=20, **figures, slowest_exit_seconds=max(exits))


def stop_worker(trial: Trial, part: str) -> float:
    """Seconds that a worker takes to stop."""
    pid, started = trial.service.pid(part), time.monotonic()
    trial.strike(part, lambda: trial.service.signal(part, signal.SIGTERM))
    assert eventually(lambda: not alive(pid), WORKER_GRACE * SLACK)
    return round(time.monotonic() - started, 2)


class TestMigration:
    def test_an_additive_one_and_its_withdrawal_in_mid_job_lose_nothing(
        self, service: Service, trial: Trial, tmp_path: Path
    ) -> None:
        assert trial.running_after(200)
        url = service.program.database_url()
        with next_release(tmp_path / "next_release"):
            trial.strike("schema", lambda: migrate_to(url, NEXT))
            assert trial.running_after(100)
            trial.strike("schema", lambda: migrate_to(url, THIS))
        figures = trial.end()
        assert figures["asked_twice"] == 0
        report("migration, short", seed=0, n=2, of=2, **figures)
