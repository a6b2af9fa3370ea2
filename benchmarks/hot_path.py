"""What a judged call costs the loop of a worker, from the sentence to its two rows, and what bare aiohttp costs for the call alone.

`python -m benchmarks.hot_path`. The service's own classes do it, on a loop of their own, in texts of 20 sentences: prompt,
permit, deadline, the HTTP call to a server in another process, the reply, its price, accounting and verdict. Left out
are the databases and what comes once a shard: claims, leases, messages, writing. Both take turns, in processes of their own;
what is printed are medians, and the ratio.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from statistics import median
from typing import Any, cast

import uvloop

from app.bootstrap import keep_what_is_imported
from app.db.execution.result_rows import Held, ResponseRow, ResultWriter, Row
from app.db.execution.shards import Claim
from app.domain.jobs.plan import atomic, cells_of
from app.domain.jobs.request import JobIn
from app.domain.jobs.resolve import resolve
from app.domain.providers.model import Usage
from app.instruments.grouped_loader import load_grouped
from app.instruments.hardened_loader import load_hardened
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from app.instruments.rules import RULES
from app.llm.connections.connections import load_connections
from app.llm.gateway import Gateway
from app.llm.models.prices import GenaiPriceBook
from app.ports import Observation, RateLimiter
from app.services.execution.atomic_responses import AtomicResponses
from app.services.execution.first_calls import FirstCalls
from app.services.execution.model_caller import ModelCaller
from app.services.execution.result_writer import BatchWriter
from app.services.execution.shard_work import ShardDependencies, finish_all
from app.services.execution.stop_signal import StopSignal
from app.services.job_context import JobContext
from app.services.providers.catalog import make_catalog
from benchmarks import stub_server
from benchmarks.transports import aiohttp_post, cpu_seconds, post_all

SENTENCES_A_TEXT = 20
SHARD_CALLS = 600
PLACES = 4
KEY = "sk-proj-" + "".join(f"{n:x}q7Zr" for n in range(24))
"""As long as they are: replies are searched for pieces of it."""
SENTENCES = (
    "I spent the evening with a new book and a cup of tea.",
    "Meeting so many people at the market always gives me energy!",
    "My neighbour asked whether I'd join the choir, and I said yes before she had finished.",
    "There is a quiet bench behind the library where I like to think.",
    "Honestly, the best part of the trip was getting lost in a town whose name I still can't spell.",
    "We argued about the plan for an hour -- then we laughed about it.",
)
"""Such as models write; they go round, each with a number of its own."""


class Unlimited:
    """A limiter that has said lately that there is no limit."""

    async def admit(
        self, _connection: str, _model: str, _expected: Usage, _tenant: str | None = None
    ) -> "Unlimited":
        """All pass."""
        return self

    def release(self) -> None:
        """Nothing is given back."""

    def is_full(self, _connection: str, _model: str) -> bool:
        """Return that further calls need not wait."""
        return False

    def observe(self, _connection: str, _model: str, _observation: Observation) -> None:
        """Nothing is learned."""


class Forgetful:
    """A writer that keeps nothing."""

    async def write(self, _batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
        """Takes about as long as a transaction."""
        await asyncio.sleep(0.01)
        return set()


def main() -> None:
    """Runs the comparison, or one part of it."""
    options = _parser().parse_args()
    if options.part:
        print(json.dumps(uvloop.run(_PARTS[options.part](options))))
        return
    costs: dict[str, list[float]] = {part: [] for part in _PARTS}
    before = os.getloadavg()
    with stub_server.running("plain", options.latency_ms) as url:
        for _ in range(options.repetitions):
            for part, found in costs.items():
                found.append(_measured(part, url, options))
    medians = {part: median(found) for part, found in costs.items()}
    report = {
        "load_average_before": [round(load, 2) for load in before],
        "cpu_us_per_call": {part: round(cost) for part, cost in medians.items()},
        "lowest": {part: round(min(found)) for part, found in costs.items()},
        "ratio_to_aiohttp": round(medians["judged"] / medians["aiohttp"], 2),
    }
    print(json.dumps(report, indent=2))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000, help="calls of one repetition")
    parser.add_argument("--in-flight", type=int, default=256, help="calls at once")
    parser.add_argument("--latency-ms", type=float, default=200.0, help="the server's time for one call")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--part", choices=_PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    return parser


def _measured(part: str, url: str, options: argparse.Namespace) -> float:
    """CPU microseconds of one call, in a process of its own."""
    arguments = ["--part", part, "--url", url, "--calls", str(options.calls)]
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.hot_path", *arguments, "--in-flight", str(options.in_flight)],
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(json.loads(run.stdout))


async def _aiohttp(options: argparse.Namespace) -> float:
    async with AsyncExitStack() as stack:
        post = await aiohttp_post(stack, options.url, options.in_flight)
        await post_all(post, 2 * options.in_flight, options.in_flight)
        before = cpu_seconds()
        await post_all(post, options.calls, options.in_flight)
        cost: float = (cpu_seconds() - before) / options.calls * 1e6
        return cost


async def _judged(options: argparse.Namespace) -> float:
    """The judging of whole texts, after as much of it as opens the connections."""
    judge = f"{{kind: openai, base_url: '{options.url}', api_key_env: KEY, models: [judge]}}"
    connections = load_connections(f"connections: {{stub: {judge}}}", {"KEY": KEY}, None)
    catalog = make_catalog(
        load_atomic(), load_personagym(), load_grouped(), load_hardened(), RULES, connections
    )
    wanted = JobIn(
        personas=["E-high"], tasks=["social_media_post"], models=["stub/judge"], judges=["stub/judge"]
    )
    spec = resolve(wanted, catalog).spec
    cell = atomic(cells_of(spec))[0]
    gateway, writer = Gateway(connections), BatchWriter(cast("ResultWriter", Forgetful()))
    caller = ModelCaller(
        chat=gateway,
        limiter=cast("RateLimiter", Unlimited()),
        prices=GenaiPriceBook(connections),
        writer=writer,
        attempts=1,
        deadline_seconds=60.0,
        in_flight=lambda *_: options.in_flight,
        budgets=cast("Any", None),
        first_calls=FirstCalls(cast("Any", None)),
    )
    claim, stop = Claim(1, 1, "default", "job_0123456789abcdefghjkmnpqrs", 1, 0, 0, 1), StopSignal()
    deps = cast("ShardDependencies", _Dependencies(writer, caller))
    work = AtomicResponses(deps, claim, stop, JobContext(spec, (cell,)), cell)

    async def judge_all(calls: int, run: int) -> None:
        """As a worker does: some shards at a time."""
        shards = iter(range(0, calls, SHARD_CALLS))
        stop.seen_active(time.monotonic() + 3600)

        async def place() -> None:
            for first in shards:
                starts = range(first, min(first + SHARD_CALLS, calls), SENTENCES_A_TEXT)
                texts = [_stored(run, start, _text(start, run)) for start in starts]
                await finish_all([work._judge_units(text, cell.items[0]) for text in texts], stop)  # noqa: SLF001

        await asyncio.gather(*(place() for _ in range(PLACES)))

    async with writer.running():
        await judge_all(4 * options.in_flight, 0)
        keep_what_is_imported()
        before = cpu_seconds()
        await judge_all(options.calls, 1)
        cost: float = (cpu_seconds() - before) / options.calls * 1e6
        return cost


class _Dependencies:
    def __init__(self, writer: BatchWriter, caller: ModelCaller) -> None:
        self.writer, self.caller, self.rules = writer, caller, RULES


def _text(start: int, run: int) -> list[str]:
    numbers = range(start, start + SENTENCES_A_TEXT)
    return [f"{run}-{n}: {SENTENCES[n % len(SENTENCES)]}" for n in numbers]


def _stored(run: int, item: int, sentences: Sequence[str]) -> ResponseRow:
    starts, ends, position = [], [], 0
    for sentence in sentences:
        starts.append(position)
        ends.append(position + len(sentence))
        position += len(sentence) + 1
    return ResponseRow(
        cell_id=1,
        run=run,
        item=item,
        tenant="",
        instruction=None,
        status="answered",
        text=" ".join(sentences),
        unit_starts=starts,
        unit_ends=ends,
        verdicts_due=len(sentences),
        finish_reason=None,
        error=None,
        input_tokens=None,
        output_tokens=None,
    )


_PARTS = {"judged": _judged, "aiohttp": _aiohttp}

if __name__ == "__main__":
    main()
