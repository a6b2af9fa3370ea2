"""The next release on the database of this one, with its jobs: finished, paused, and interrupted in the middle."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import psycopg
import pytest

from app.db.migration.migrate import current_revision, upgrade
from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Json, Stack, judged_path, running_stack
from tests.next_release import NEXT, THIS, next_release

pytestmark = pytest.mark.slow

ATOMIC: Json = {
    "personas": ["E-low", "A-high"],
    "tasks": ["essay", "social_media_post"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": [0, 1],
    "iterations": 2,
}
GYM: Json = {
    "personas": ["gym-01"],
    "tasks": [{"task": "action_justification", "questions": 2}],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "reasoner": "simulated/sim-reasoner",
}
IN_FLIGHT, LATENCY_MS = "4", 200
"""A job of 300 calls takes a quarter of a minute, so that it can be stopped in the middle."""

VERDICTS = "SELECT count(*) FROM verdicts WHERE cell_id IN (SELECT id FROM cells WHERE job_id = %s)"


@dataclass(frozen=True)
class Before:
    """The jobs before the migration.

    Attributes:
        finished: The results by job.
        unfinished: The jobs by what happened to them.
        verdicts: How many verdicts each unfinished job had.
    """

    finished: Json
    unfinished: dict[str, str]
    verdicts: dict[str, int]


@dataclass(frozen=True)
class Upgraded:
    """The next release's stack on the migrated database."""

    stack: Stack
    database_url: str
    before: Before


def verdicts(url: str, job: str) -> int:
    with psycopg.connect(libpq_url(url)) as connection:
        (number,) = connection.execute(VERDICTS, [job]).fetchone() or (0,)
    return int(number)


def judging(job: Json) -> bool:
    """Whether a job is in the middle."""
    return bool(job["progress"]["judging"]["succeeded"] > 0)


def run_jobs(stack: Stack) -> tuple[Json, dict[str, str]]:
    """The results of the finished jobs, and the unfinished ones."""
    finished = [stack.submit(body) for body in (ATOMIC, GYM)]
    assert {stack.ended(job)["status"] for job in finished} == {"completed"}
    results = {job: stack.results(job) for job in finished}
    stack.simulate(latency_ms=LATENCY_MS)
    paused = stack.submit(ATOMIC)
    stack.until(paused, judging)
    stack.act(paused, "pause")
    stack.until(paused, lambda job: job["status"] == "paused")
    interrupted = stack.submit(ATOMIC)
    stack.until(interrupted, judging)
    stack.kill("worker1")
    return results, {"paused": paused, "interrupted": interrupted}


@pytest.fixture(scope="module")
def upgraded(databases: Databases, template_database: str) -> Iterator[Upgraded]:
    with (
        databases.new("upgraded", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as queue,
    ):
        running = partial(running_stack, database_url=url, redis_url=queue.url())
        with running(directory / "this", environment={"ASSAY_MAX_IN_FLIGHT": IN_FLIGHT}) as stack:
            finished, unfinished = run_jobs(stack)
        before = Before(finished, unfinished, {job: verdicts(url, job) for job in unfinished.values()})
        assert current_revision(url) == THIS
        with next_release(directory / "release"):
            upgrade(url)
            assert current_revision(url) == NEXT
            with running(directory / "next") as stack:
                assert stack.api.get("/readyz").json()["parts"]["schema"] == "ok"
                yield Upgraded(stack, url, before)


class TestUpgrade:
    def test_results_of_finished_jobs_stay_the_same(self, upgraded: Upgraded) -> None:
        for job, results in upgraded.before.finished.items():
            assert upgraded.stack.results(job) == results

    @pytest.mark.parametrize("state", ["interrupted", "paused"])
    def test_an_unfinished_job_is_finished_and_nothing_asked_twice(
        self, upgraded: Upgraded, state: str
    ) -> None:
        job = upgraded.before.unfinished[state]
        if state == "paused":
            assert upgraded.stack.job(job)["status"] == "paused"
            upgraded.stack.act(job, "resume")
        ended = upgraded.stack.ended(job)
        assert ended["status"] == "completed"
        assert upgraded.stack.results(job)["completeness"] == "full"
        asked = {judged_path(entry["request_id"]) for entry in upgraded.stack.ledger(job)}
        judged = sum(path.startswith("judging/") for path in asked)
        made = upgraded.before.verdicts[job]
        assert made > 0
        assert judged == verdicts(upgraded.database_url, job) - made > 0

    def test_finished_jobs_are_exported_and_shown(self, upgraded: Upgraded) -> None:
        for job in upgraded.before.finished:
            for form in ("html", "csv", "jsonl", "parquet"):
                answer = upgraded.stack.api.get(f"/v1/jobs/{job}/report", params={"format": form})
                assert answer.status_code == 200, form
            assert upgraded.stack.api.get(f"/jobs/{job}", headers={"accept": "text/html"}).status_code == 200
