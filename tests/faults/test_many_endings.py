"""A tenant's many jobs that end at once, beside another tenant's small job."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Json, Stack, running_stack
from tests.faults.test_slow_tenant import OTHER_MODEL, Tenant
from tests.faults.trial import report
from tests.observe import eventually

QUICK: Json = OTHER_MODEL | {"iterations": 1}
LATENCY_MS = 600.0
"""A small job makes two calls one after the other, so that it takes about two seconds, like those of the promise."""
UNENDED = "SELECT count(*) FROM jobs WHERE tenant = 'many' AND finished_at IS NULL"
AT_WORK = f"{UNENDED} AND status <> 'paused'"


@contextmanager
def service(
    directory: Path, databases: Databases, template: str, valkey: EmbeddedValkey
) -> Iterator[tuple[Stack, Tenant, Tenant, psycopg.Connection]]:
    """A stack with one worker, its tenants `many` and `other`, and its database."""
    with (
        databases.new("endings", template=template) as url,
        running_stack(
            directory,
            database_url=url,
            redis_url=valkey.url(),
            environment={"ASSAY_KEY_PEPPER": PEPPER},
        ) as stack,
        psycopg.connect(libpq_url(url), autocommit=True) as database,
    ):
        yield stack, Tenant(stack, url, "many"), Tenant(stack, url, "other"), database


def count(database: psycopg.Connection, query: str) -> int:
    row = database.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_another_tenant_s_job_ends_before_most_of_them(
    tmp_path: Path, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> None:
    jobs = 40
    with service(tmp_path, databases, template_database, valkey) as (stack, many, other, database):
        other.seconds(QUICK)  # what is imported late is there
        with stack.frozen("worker1"):
            for _ in range(jobs):
                many.submit(QUICK)
            job = other.submit(QUICK)
        assert eventually(lambda: other.status(job) == "completed", 120)
        unended = count(database, UNENDED)
        assert unended > jobs / 2
        report("many endings", seed=0, n=1, of=1, jobs=jobs, unended=unended)


@pytest.mark.long
@pytest.mark.parametrize("ending", ["complete", "cancel", "retry"])
def test_it_takes_at_most_twice_its_time_alone(
    tmp_path: Path, databases: Databases, template_database: str, valkey: EmbeddedValkey, ending: str
) -> None:
    jobs, small = 300, 20
    with service(tmp_path, databases, template_database, valkey) as (stack, many, other, database):
        stack.simulate(latency_ms=LATENCY_MS)
        for _ in range(small):
            other.seconds(QUICK)  # what is imported late is there
        alone = sorted(other.seconds(QUICK) for _ in range(small))
        if ending == "retry":
            stack.simulate(quota=1, latency_ms=0)
        elif ending == "cancel":
            stack.simulate(latency_ms=60_000)
        started = time.monotonic()
        ids = [many.submit(QUICK) for _ in range(jobs)]
        if ending == "retry":
            # Without credit a job fails at its first calls, or is paused if it has got a reply.
            assert eventually(lambda: count(database, AT_WORK) == 0, 600)
            stack.simulate(quota=0, latency_ms=LATENCY_MS)
        elif ending == "cancel":
            stack.simulate(latency_ms=LATENCY_MS)
        with ThreadPoolExecutor(8) as pool:
            for id_ in ids if ending != "complete" else ():
                pool.submit(many.act, id_, ending)
            beside = sorted(other.seconds(QUICK) for _ in range(small))
        report(
            f"300 endings, {ending}",
            seed=0,
            n=1,
            of=1,
            alone=round(alone[-2], 2),
            beside=round(beside[-2], 2),
            seconds=round(time.monotonic() - started, 1),
        )
        assert beside[-2] <= 2 * alone[-2]
