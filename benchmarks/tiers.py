"""How much of a provider's limits a job uses, tier by tier, and how many calls the provider rejects.

`python -m benchmarks.tiers`, or with some tiers' names. Real HTTP through a worker's own parts (ModelCaller, the limiter on a real Redis, the
adapters), in one and in four processes, to providers that count strictly (`benchmarks.strict_provider`, 200 ms a call). Their replies
name the limits (`named`), or not, and nobody else does either (`found`): then a 429 is the first that is heard of them.

What is used is the time that the limit has for the calls, over the time from the word to begin to the last call's arrival, so the start counts. The
limit's time for n calls is n - 1 intervals of 60 s over the whole calls that fit into any 60 s: 20 calls of 1,480 tokens under a limit of 30,000 a
minute, and not the 20.3 that no strict count lets pass. Time is not compressed: a run sends what is allowed in `--seconds`, under 3 calls a minute at
least 8 calls. Tiers with few calls a second run beside each other.
"""

import argparse
import importlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import uvloop

from app.db.execution.result_rows import ResultWriter
from app.db.execution.shards import Claim
from app.domain.providers.model import Model, ModelParameters, Stage
from app.limits.redis_limiter import RedisRateLimiter
from app.llm.connections.connections import load_connections
from app.llm.gateway import Gateway
from app.llm.models.prices import PRICE_LISTS, GenaiPriceBook
from app.redis_server import RedisServer
from app.services.execution.call_rows import CallKey
from app.services.execution.first_calls import FirstCalls
from app.services.execution.model_caller import ModelCaller
from app.services.execution.result_writer import BatchWriter
from app.services.execution.shard_work import finish_all
from app.services.execution.stop_signal import StopSignal
from benchmarks.hot_path import Forgetful
from benchmarks.strict_provider import TOKENS_PER_CHARACTER, Allowance, account, running
from benchmarks.whole_job import machine
from embedded.valkey import EmbeddedValkey

MODES = ("named", "found")
FEWEST_CALLS = 8
WRITTEN = 20
IN_FLIGHT = 256
BUSY_PER_SECOND = 100.0
"""Tiers with more calls a second run alone."""
FIRST_CONTACT_SECONDS = 65.0
"""What is rejected later is not for want of any knowledge."""


@dataclass(frozen=True)
class Tier:
    """One row.

    Attributes:
        allowance: The provider's limits.
        tokens: Of one call.
        kind: The wire format.
    """

    allowance: Allowance
    tokens: int = 150
    kind: str = "openai"

    @property
    def prompt(self) -> str:
        """What is sent."""
        return "x" * round((self.tokens - WRITTEN) / TOKENS_PER_CHARACTER)

    @property
    def per_minute(self) -> int:
        """Whole calls that the tightest limit allows in any 60 s."""
        limits = self.allowance
        costs = (
            (limits.requests, 1),
            (limits.tokens, self.tokens),
            (limits.input_tokens, self.tokens - WRITTEN),
            (limits.output_tokens, WRITTEN),
        )
        return math.floor(min(limit / cost for limit, cost in costs if limit is not None))


TIERS: Mapping[str, Tier] = {
    "3": Tier(Allowance(3)),
    "gemini 15": Tier(Allowance(15)),
    "100": Tier(Allowance(100)),
    "500/30k": Tier(Allowance(500, 30_000)),
    "500/30k long personas": Tier(Allowance(500, 30_000), tokens=1480),
    "500/200k": Tier(Allowance(500, 200_000)),
    "groq 14400 a day/6k": Tier(Allowance(tokens=6000, requests_a_day=14_400)),
    "anthropic 50/30k/8k": Tier(
        Allowance(50, input_tokens=30_000, output_tokens=8000), tokens=1000, kind="anthropic"
    ),
    "5000/450k": Tier(Allowance(5000, 450_000)),
    "5000/2M": Tier(Allowance(5000, 2_000_000)),
    "10000/10M": Tier(Allowance(10_000, 10_000_000)),
    "30000/150M": Tier(Allowance(30_000, 150_000_000)),
}


def main() -> None:
    """Runs the tiers and prints a table."""
    options = _parser().parse_args()
    if options.part:
        uvloop.run(_work(options))
        return
    before = os.getloadavg()
    names = options.tiers or list(TIERS)
    print(f"{machine()}, load average before {before[0]:.1f}\n")
    print(
        "| tier | limits | workers | calls | used of the limit | rejected | of these after the first minute |"
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as directory, EmbeddedValkey(Path(directory) / "valkey") as valkey:
        for mode in options.modes:
            for workers in options.workers:
                _run_all(names, mode, workers, valkey.url(), options.seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tiers", nargs="*", help=f"some of: {', '.join(TIERS)}")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    parser.add_argument("--seconds", type=float, default=180.0, help="for how long a run may send calls")
    parser.add_argument("--workers", nargs="*", type=int, default=[1, 4], help="worker processes")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--redis", help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, help=argparse.SUPPRESS)
    return parser


def _run_all(names: Sequence[str], mode: str, workers: int, redis: str, seconds: float) -> None:
    """One table row a tier, those with few calls a second beside each other."""
    quiet = [name for name in names if TIERS[name].per_minute < 60 * BUSY_PER_SECOND]
    with ThreadPoolExecutor(max(1, len(quiet))) as beside:
        rows = list(beside.map(lambda name: _row(name, mode, workers, redis, seconds), quiet))
    for row in rows:
        print(row, flush=True)
    for name in names:
        if name not in quiet:
            print(_row(name, mode, workers, redis, seconds), flush=True)


def _row(name: str, mode: str, workers: int, redis: str, seconds: float) -> str:
    tier = TIERS[name]
    calls = max(FEWEST_CALLS, round(tier.per_minute * seconds / 60))
    allowance = Allowance(**{**asdict(tier.allowance), "names": mode == "named"})
    command = [
        sys.executable,
        "-m",
        "benchmarks.tiers",
        name,
        "--part",
        f"{mode}-{workers}",
        "--redis",
        redis,
    ]
    with running(allowance) as url, ExitStack() as stack:
        shares = [calls // workers + (number < calls % workers) for number in range(workers)]
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [*command, "--url", url, "--calls", str(share)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            for share in shares
            if share
        ]
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        begin = time.monotonic()
        for process in started:
            assert process.stdin is not None
            process.stdin.close()
        for process in started:
            if process.wait():
                raise RuntimeError(f"a worker of {name} failed")
        found = account(url)
    taken, rejected = found["taken"], found["rejected"]
    used = (len(taken) - 1) * 60 / tier.per_minute / (max(taken) - begin)
    later = sum(at > begin + FIRST_CONTACT_SECONDS for at in rejected)
    share_rejected = len(rejected) / (len(taken) + len(rejected))
    return (
        f"| {name} | {mode} | {workers} | {len(taken)} | {used:.1%} "
        f"| {len(rejected)} ({share_rejected:.1%}) | {later} |"
    )


async def _work(options: argparse.Namespace) -> None:
    """A worker process: says that it is ready, and makes its calls once it is told to."""
    (name,) = options.tiers
    tier = TIERS[name]
    connection = f"{options.part}-{re.sub('[^a-z0-9]', '-', name.lower())}"
    path = "/v1" if tier.kind == "openai" else ""
    entry = {"kind": tier.kind, "base_url": f"{options.url}{path}", "api_key_env": "KEY"}
    connections = load_connections(json.dumps({"connections": {connection: entry}}), {"KEY": "any"}, None)
    gateway = Gateway(connections)
    redis = RedisServer(options.redis).client(5)
    limiter = RedisRateLimiter(redis, connections.limits)
    await limiter.begin()
    writer, stop = BatchWriter(cast("ResultWriter", Forgetful())), StopSignal()
    stop.seen_active(time.monotonic() + 3600)
    caller = ModelCaller(
        chat=gateway,
        limiter=limiter,
        prices=GenaiPriceBook(connections),
        writer=writer,
        attempts=3,
        deadline_seconds=60.0,
        in_flight=lambda *_: IN_FLIGHT,
        budgets=cast("Any", None),
        first_calls=FirstCalls(cast("Any", None)),
    )
    claim = Claim(1, 1, "default", "job_0123456789abcdefghjkmnpqrs", 1, 0, 0, 1)
    model = Model("judge", connection, "m", ModelParameters())
    await gateway.prepare(connection, "default")
    importlib.import_module(PRICE_LISTS)  # as a worker does before it takes calls
    print("ready", flush=True)
    sys.stdin.read()

    async def call(number: int) -> None:
        key = CallKey(Stage.JUDGING, run=1, item=number)
        await caller.call(model, None, tier.prompt, key=key, claim=claim, stop=stop)

    async with writer.running():
        await finish_all([call(number) for number in range(options.calls)], stop)
    await limiter.close()
    await gateway.close()
    await redis.aclose()


if __name__ == "__main__":
    main()
