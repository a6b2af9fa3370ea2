"""A whole stack whose services connect as a role that owns no table."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.db.migration.migrate import upgrade
from tests.databases import Databases
from tests.e2e.stack import Stack, running_stack
from tests.service_role import database_for_service

pytestmark = pytest.mark.slow

BODY = {
    "personas": ["E-low", "A-high"],
    "tasks": ["essay", "social_media_post"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": [0, 3],
    "iterations": 2,
    "reuse": {"judging": "in_job"},
}


@pytest.fixture
def serviced(databases: Databases, template_database: str, redis_url: str, scratch: Path) -> Iterator[Stack]:
    with database_for_service(databases, template_database) as urls:
        assert upgrade(urls.owner, service_url=urls.service) is None
        with running_stack(scratch, database_url=urls.service, redis_url=redis_url) as stack:
            yield stack


def test_a_whole_job_is_submitted_run_finalized_exported_and_deleted(serviced: Stack) -> None:
    job = serviced.ended(serviced.submit(BODY))
    assert job["status"] == "completed"
    assert serviced.results(job["id"])["completeness"] == "full"
    assert serviced.api.get("/readyz").json()["parts"]["row_level_security"] == "ok"
    for form in ("html", "csv", "parquet"):
        assert serviced.api.get(f"/v1/jobs/{job['id']}/report", params={"format": form}).status_code == 200
    assert serviced.api.delete(f"/v1/jobs/{job['id']}").is_success
    assert serviced.api.get(f"/v1/jobs/{job['id']}").status_code == 404
