"""A bundle's rows are read in pages of a bounded size."""

import json

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.jobs import bundles
from tests.integration.jobs import TENANT, claimed, new_job, whole_run

RUNS = 4


async def rows_of(engine: AsyncEngine, job_id: str, table: str) -> list[list[dict[str, object]]]:
    pages = bundles.stream_rows(engine, TENANT, job_id, table, replies=True)
    return [list(map(json.loads, page)) async for page in pages]


@pytest.mark.parametrize("table", ["responses", "verdicts"])
async def test_a_cell_is_divided_between_responses_and_nothing_is_lost(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    job = await new_job(engine, iterations=RUNS)
    claim = await claimed(engine, job.id)
    rows = [row for run in range(RUNS) for row in whole_run(claim, run)]
    await ResultWriter(engine).write({(claim.shard_id, claim.token): rows})
    (whole,) = await rows_of(engine, job.id, table)
    monkeypatch.setattr(bundles, "PAGE_BYTES", 1)
    pages = await rows_of(engine, job.id, table)
    assert [row for page in pages for row in page] == whole
    assert [{row["run"] for row in page} for page in pages] == [{run} for run in range(RUNS)]
