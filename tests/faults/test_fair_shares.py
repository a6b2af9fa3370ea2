"""Two tenants' jobs at one connection, whose limit is less than either of them could use."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect
from app.queue.celery_app import make_celery
from app.queue.sender import CeleryQueue
from app.redis_server import RedisServer
from embedded.valkey import EmbeddedValkey
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, running_stack
from tests.faults.trial import report
from tests.integration.jobs import new_job
from tests.job_requests import a_model
from tests.observe import eventually

PER_MINUTE = 3_000
"""What the provider allows for each model, and says in its replies."""
SETTLING_SECONDS = 60.0
"""Until the later job's calls come at its full rate: shards of the other's must end before it is at work in both workers."""
EVEN = (0.4, 0.6)
"""Between which the later job's share of the calls to the judge lies."""


@contextmanager
def limited_stack(
    directory: Path, databases: Databases, template: str, valkey: EmbeddedValkey
) -> Iterator[tuple[Stack, str]]:
    """Two workers at a provider with a limit, and their database's URL."""
    with (
        databases.new("shares", template=template) as url,
        running_stack(
            directory,
            database_url=url,
            redis_url=valkey.url(),
            slots=8,
            workers=2,
        ) as stack,
    ):
        stack.simulate(latency_ms=100, requests_per_minute=PER_MINUTE)
        yield stack, url


def shares(stack: Stack, job_ids: list[str], seconds: float) -> list[int]:
    """How many calls to the judge each of the jobs made from now on."""
    before = [len(_judged(stack, job_id)) for job_id in job_ids]
    time.sleep(seconds)
    return [len(_judged(stack, job_id)) - had for job_id, had in zip(job_ids, before, strict=True)]


def _judged(stack: Stack, job_id: str) -> list[Json]:
    return [entry for entry in stack.ledger(job_id) if entry["request_id"].startswith(f"{job_id}/judging/")]


class TestTwoTenants:
    @pytest.mark.parametrize(
        "seconds", [pytest.param(8.0, id="short"), pytest.param(60.0, id="long", marks=pytest.mark.long)]
    )
    def test_they_share_a_limit_evenly_whoever_came_first(
        self,
        tmp_path: Path,
        databases: Databases,
        template_database: str,
        valkey: EmbeddedValkey,
        seconds: float,
    ) -> None:
        with limited_stack(tmp_path, databases, template_database, valkey) as (stack, url):
            first = submit(url, valkey.url(), "early")
            assert eventually(lambda: len(_judged(stack, first)) > 150, 120)
            second = submit(url, valkey.url(), "late")
            assert eventually(lambda: len(_judged(stack, second)) > 0, 60)
            deadline = time.monotonic() + SETTLING_SECONDS
            while True:
                had, has = shares(stack, [first, second], seconds)
                if EVEN[0] <= has / max(1, had + has) <= EVEN[1]:
                    break
                assert time.monotonic() < deadline, (had, has)
            report(f"two tenants, {seconds:g} s", seed=0, n=1, of=1, early=had, late=has)


def submit(database_url: str, redis_url: str, tenant: str) -> str:
    """A job of some 20,000 calls, of a tenant."""
    return asyncio.run(_submit(database_url, redis_url, tenant))


async def _submit(database_url: str, redis_url: str, tenant: str) -> str:
    engine: AsyncEngine = connect(database_url, pool_size=1)
    try:
        job = await new_job(
            engine,
            tenant=tenant,
            queue=CeleryQueue(make_celery(RedisServer(redis_url))),
            personas=("big-five",),
            tasks=("essay", "social_media_post"),
            models=(a_model("simulated/sim-drifting"),),
            instructions=(1, 2, 3, 4, 5),
            iterations=10,
        )
    finally:
        await engine.dispose()
    return job.id
