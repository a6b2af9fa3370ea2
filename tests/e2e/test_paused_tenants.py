"""The operator pauses a tenant whose jobs are at work."""

import psycopg
from click.testing import CliRunner

from app.cli import app
from tests.databases import libpq_url
from tests.e2e.stack import Json, Stack, judged_path
from tests.observe import PATIENCE, eventually

JOB: Json = {
    "personas": ["E-high", "N-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": [0],
    "iterations": 20,
}


def assay_tenants(command: str, database_url: str) -> str:
    done = CliRunner().invoke(app, ["tenants", command, "default"], env={"DATABASE_URL": database_url})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_its_jobs_make_no_calls_however_they_are_resumed_and_then_go_on_where_they_stopped(
    stack: Stack, common_database: str
) -> None:
    stack.simulate(latency_ms=200)
    job = stack.submit(JOB)
    stack.until(job, lambda found: found["usage"]["calls"] > 0)
    try:
        assay_tenants("pause", common_database)
        with psycopg.connect(libpq_url(common_database), autocommit=True) as database:
            leased = "SELECT FROM shards WHERE job_id = %s AND lease_expires_at > clock_timestamp()"
            assert eventually(lambda: database.execute(leased, [job]).fetchone() is None, PATIENCE)
            sent = len(stack.ledger(job))
            # A resumption that did not see the pause, as one after an outage; the sweeper announces the job.
            database.execute(
                "UPDATE jobs SET status = 'queued', status_reason = NULL, error = NULL WHERE id = %s", [job]
            )
        found = stack.until(job, lambda found: found["status"] == "paused")
        assert (found["status_reason"], found["error"]["code"]) == ("tenant_paused", "tenant_paused")
        assert len(stack.ledger(job)) == sent
    finally:
        said = assay_tenants("resume", common_database)
    assert "resumed" in said
    assert stack.ended(job)["status"] == "completed"
    asked = [judged_path(entry["request_id"]) for entry in stack.ledger(job)]
    assert len(asked) == len(set(asked)) == stack.job(job)["usage"]["calls"]
