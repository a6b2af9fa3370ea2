"""What else of the service could be too slow one day, each by itself: the limiter's Redis, messages, status polls.

`python -m benchmarks.bottlenecks`. CPU time by operation, of the part that all share; one core's worth of it is where that part ends.
What Postgres takes to keep rows is `benchmarks.written_rows`.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
from redis.asyncio import Redis

from app.limits.scripts import LEASE
from app.limits.shared_rates import Bucket, as_json
from app.limits.timeline import Cost, Report, interval
from app.queue.celery_app import make_celery
from app.queue.sender import CeleryQueue
from app.redis_server import RedisServer
from benchmarks import stub_server
from benchmarks.judging import Given, judging_stack, run_job
from benchmarks.processes import ProcessMeter
from benchmarks.whole_job import machine
from embedded.supervisor import Supervisor

CLIENTS = 8
NOBODYS = 10**12
"""Ids of shards from here on belong to no shard: a worker asks for one, finds nothing, and is done."""


def main() -> None:
    """Runs the benchmark and prints JSON."""
    options = _parser().parse_args()
    before = os.getloadavg()
    with (
        stub_server.running("plain", 1.0) as url,
        judging_stack(url, workers=1, in_flight=64, data_dir=options.data_dir) as supervisor,
    ):
        report = {
            "machine": machine(),
            "load_average_before": [round(load, 2) for load in before],
            "leases": _leases(supervisor, options.leases),
            "messages": _messages(supervisor, options.messages),
            "polls": _polls(supervisor, options.polls),
            "load_average_after": [round(load, 2) for load in os.getloadavg()],
        }
    text = json.dumps(report, indent=2)
    print(text)
    if options.output:
        options.output.write_text(f"{text}\n", encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leases", type=int, default=20_000, help="leases of the rate limiter")
    parser.add_argument("--messages", type=int, default=2000, help="messages sent and received")
    parser.add_argument("--polls", type=int, default=2000, help="status polls")
    parser.add_argument("--data-dir", type=Path, help="where the databases lie while it runs")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    return parser


def _leases(supervisor: Supervisor, leases: int) -> dict[str, Any]:
    """Leases of one bucket, as limiters ask for them, from several connections."""

    async def lease_all() -> None:
        async with Redis.from_url(supervisor.urls.redis) as redis:
            script = redis.register_script(LEASE)
            bucket, asked = Bucket("bench", "model", "bench:limit"), iter(range(leases))
            cost = Cost(1, 300, 250, 50)
            ask = {
                **as_json(Report()),
                "calls": 1,
                "cost": cost,
                "first": cost,
                "largest": cost,
                "operators": (interval(1e9), interval(1e12), 0.0, 0.0),  # so high that no lease has to wait
                "bucket": bucket.name,
            }
            arguments = [json.dumps(ask)]

            async def lease() -> None:
                for _ in asked:
                    await script(keys=bucket.keys, args=arguments)

            await asyncio.gather(*(lease() for _ in range(CLIENTS)))

    return _taken(supervisor, leases, lambda: asyncio.run(lease_all()))


def _messages(supervisor: Supervisor, messages: int) -> dict[str, Any]:
    """Messages that name no shard, from the sender's call until the worker has taken the last."""
    queue = CeleryQueue(make_celery(RedisServer(supervisor.urls.redis)))

    async def send_all() -> None:
        for start in range(0, messages, 100):
            await queue.announce_shards(range(NOBODYS + start, NOBODYS + min(start + 100, messages)))

    def send_and_wait() -> None:
        asyncio.run(send_all())
        while asyncio.run(queue.length()):
            time.sleep(0.05)

    before = time.process_time()
    found = _taken(supervisor, messages, send_and_wait)
    found["cpu_us"]["sender"] = round((time.process_time() - before) / messages * 1e6, 1)
    return found


def _polls(supervisor: Supervisor, polls: int) -> dict[str, Any]:
    """Reads of a job that is over, by clients that each keep a connection."""
    with httpx2.Client(base_url=supervisor.urls.api, timeout=60) as api:
        job = run_job(api, Given(500, "polled"), 120.0)

    def poll(numbers: Iterator[int]) -> None:
        with httpx2.Client(base_url=supervisor.urls.api, timeout=60) as client:
            for _ in numbers:
                client.get(f"/v1/jobs/{job['id']}").raise_for_status()

    def poll_all() -> None:
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(poll, (iter(range(polls // CLIENTS)) for _ in range(CLIENTS))))

    return _taken(supervisor, polls, poll_all)


def _taken(supervisor: Supervisor, operations: int, act: Callable[[], object]) -> dict[str, Any]:
    """Operations a second, and CPU microseconds of each by process."""
    meter = ProcessMeter(supervisor.pids())
    before, started = meter.cpu_seconds(), time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    after = meter.cpu_seconds()
    return {
        "operations": operations,
        "per_second": round(operations / seconds),
        "cpu_us": {name: round((after[name] - used) / operations * 1e6, 1) for name, used in before.items()},
    }


if __name__ == "__main__":
    main()
