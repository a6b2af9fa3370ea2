"""What Postgres takes to keep calls and verdicts, and to be rid of them: time, CPU, WAL and disk by call.

`python -m benchmarks.written_rows`. Processes of their own write through the service's writer as workers do, in transactions of so many
calls with a verdict each and so far apart, and do nothing else; then the job is removed as a whole, and vacuumed. Postgres is the embedded one, durable.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
import uvloop

from app.db.engine import connect
from app.db.execution.result_rows import CallRow, ResultWriter, VerdictRow
from app.db.migration.migrate import upgrade
from app.services.identifiers import new_uuid
from app.services.jobs.retention import remove_expired
from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import machine
from embedded.postgres import EmbeddedPostgres

JOB, TENANT = "job_written_rows", "local"
UNITS = 20
TABLES = ("calls", "verdicts")


def main() -> None:
    """Runs the benchmark and prints JSON."""
    options = _parser().parse_args()
    report: dict[str, Any] = {
        "machine": machine(),
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
        "calls": options.calls,
        "calls_per_transaction": options.transaction,
        "rest_ms": options.rest_ms,
    }
    with tempfile.TemporaryDirectory(prefix="assay-bench-", dir=options.data_dir) as name:
        directory = Path(name)
        directory.chmod(0o711)  # passable: Postgres may have to run as another account
        for writers in options.writers:
            with EmbeddedPostgres(directory / f"postgres{writers}") as server:
                report[f"writers_{writers}"] = _measure(server, writers, options)
    after = [round(load, 2) for load in os.getloadavg()]
    text = json.dumps(report | {"load_average_after": after}, indent=2)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--writers", type=int, nargs="*", default=[1, 2, 4], help="writing processes")
    parser.add_argument("--transaction", type=int, default=500, help="calls in a transaction")
    parser.add_argument(
        "--rest-ms", type=float, default=0.0, help="between the beginnings of two transactions"
    )
    parser.add_argument("--data-dir", type=Path, help="where the databases lie while it runs")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    return parser


def _measure(server: EmbeddedPostgres, writers: int, options: argparse.Namespace) -> dict[str, Any]:
    calls: int = options.calls
    url = server.url()
    upgrade(url)
    assert server.process.pid is not None
    meter = ProcessMeter({"postgres": server.process.pid})
    plain = url.replace("postgresql+psycopg://", "postgresql://", 1)
    with psycopg.connect(plain, autocommit=True) as connection:
        places = _job(connection, writers)
        empty = _sizes(connection)
        found: dict[str, Any] = {"writing": _writing(connection, meter, url, places, options)}
        full = _sizes(connection)
        found["bytes_per_call"] = {table: round((full[table] - empty[table]) / calls) for table in TABLES}
        connection.execute("UPDATE jobs SET status = 'completed', finished_at = now() - interval '2 days'")
        found["removing"] = _step(connection, meter, calls, lambda: asyncio.run(_remove(url)))
        found["vacuuming"] = _step(
            connection, meter, calls, lambda: connection.execute("VACUUM calls, verdicts")
        )
        found["mib_after_vacuum"] = round(sum(_sizes(connection).values()) / 2**20, 1)
    return found


def _job(connection: psycopg.Connection, writers: int) -> list[tuple[int, int]]:
    """A job with a cell and a shard for each writer: their ids."""
    connection.execute(
        "INSERT INTO jobs (id, tenant, status, request, spec, simulated, metadata, planned_responses, expected_verdicts)"
        " VALUES (%s, %s, 'running', '{}', '{}', true, '{}', 0, 0)",
        (JOB, TENANT),
    )
    places = []
    for ordinal in range(writers):
        (cell,) = _one(
            connection,
            "INSERT INTO cells (tenant, job_id, ordinal, model, persona, task)"
            " VALUES (%s, %s, %s, 'm', 'p', 't') RETURNING id",
            (TENANT, JOB, ordinal),
        )
        (shard,) = _one(
            connection,
            "INSERT INTO shards (tenant, job_id, cell_id, run_start, run_stop, planned_responses)"
            " VALUES (%s, %s, %s, 0, 1, 0) RETURNING id",
            (TENANT, JOB, cell),
        )
        places.append((cell, shard))
    return places


def _writing(
    connection: psycopg.Connection,
    meter: ProcessMeter,
    url: str,
    places: list[tuple[int, int]],
    options: argparse.Namespace,
) -> dict[str, Any]:
    calls: int = options.calls
    pace = (calls // len(places), options.transaction, options.rest_ms / 1000)
    with ProcessPoolExecutor(len(places), mp_context=get_context("spawn")) as pool:
        list(pool.map(_ready, places))  # started and everything imported, before it counts
        taken: list[float] = []

        def write() -> None:
            taken.extend(pool.map(partial(_write_in_process, url, *pace), places))

        found = _step(connection, meter, calls, write)
    return found | {
        "calls_per_second": round(calls / found["seconds"]),
        "writer_us_per_call": round(sum(taken) / calls * 1e6),
    }


def _ready(_: tuple[int, int]) -> None:
    time.sleep(0.5)  # so that each process of the pool gets one


def _write_in_process(
    url: str, calls: int, transaction: int, rest_seconds: float, place: tuple[int, int]
) -> float:
    """The CPU seconds of this process for so many calls."""
    before = time.process_time()
    uvloop.run(_write(url, calls, transaction, rest_seconds, place))
    return time.process_time() - before


async def _write(url: str, calls: int, transaction: int, rest_seconds: float, place: tuple[int, int]) -> None:
    engine = connect(url, pool_size=1)
    writer = ResultWriter(engine)
    rows = _rows(*place, calls)
    while batch := list(islice(rows, 2 * transaction)):
        begun = time.perf_counter()
        await writer.write({(place[1], 0): batch})
        await asyncio.sleep(max(0.0, begun + rest_seconds - time.perf_counter()))
    await engine.dispose()


def _rows(cell: int, shard: int, calls: int) -> Iterator[CallRow | VerdictRow]:
    for run, unit in islice(product(range(2**15), range(UNITS)), calls):
        yield VerdictRow(cell, run, 0, unit, 0, 0, TENANT, "scored", 4, "4")
        yield CallRow(
            id=new_uuid(),
            tenant=TENANT,
            job_id=JOB,
            shard_id=shard,
            stage="judging",
            connection="openai",
            model="gpt-4o-2024-08-06",
            cell_id=cell,
            run=run,
            item=0,
            unit=unit,
            trait=0,
            judge=0,
            attempt=1,
            outcome="ok",
            code=None,
            http_status=200,
            input_tokens=214,
            output_tokens=1,
            cached_input_tokens=0,
            usd=0.000545,
            maybe_paid=True,
            latency_ms=203.5,
            finish_reason="stop",
            model_snapshot="gpt-4o-2024-08-06",
            system_fingerprint="fp_0123456789",
            provider_request_id="req_0123456789abcdef0123456789abcdef",
            started_at=datetime.now(UTC),
        )


async def _remove(url: str) -> None:
    engine = connect(url, pool_size=1)
    assert await remove_expired(engine, 1) == (TENANT, JOB)
    await engine.dispose()


def _step(
    connection: psycopg.Connection, meter: ProcessMeter, calls: int, act: Callable[[], object]
) -> dict[str, Any]:
    """What something takes of Postgres."""
    (wal,), cpu, started = (
        _one(connection, "SELECT pg_current_wal_insert_lsn()"),
        meter.cpu_seconds(),
        time.perf_counter(),
    )
    act()
    seconds = time.perf_counter() - started
    used = meter.cpu_seconds()["postgres"] - cpu["postgres"]
    (written,) = _one(connection, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s)", (wal,))
    return {
        "seconds": round(seconds, 2),
        "postgres_us_per_call": round(used / calls * 1e6, 1),
        "wal_bytes_per_call": round(written / calls),
    }


def _sizes(connection: psycopg.Connection) -> dict[str, int]:
    """Bytes of each table with its indexes."""
    return {
        table: _one(connection, "SELECT pg_total_relation_size(%s::regclass)", (table,))[0]
        for table in TABLES
    }


def _one(connection: psycopg.Connection, query: Any, values: tuple[object, ...] = ()) -> tuple[Any, ...]:
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return row


if __name__ == "__main__":
    main()
