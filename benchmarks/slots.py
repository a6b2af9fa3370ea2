"""Servers with few slots: how much of them is used, and how many answers nobody gets, over real HTTP.

`python -m benchmarks.slots`. For each server and each number of worker processes, as many calls as are allowed are kept waiting for some time: by real
`ModelCaller`s that share a Valkey, without a database. The server takes the same time for each call, one in each slot, and holds the
others in its queue. One that is oblivious also computes the calls whose caller has hung up. What is printed are slot-seconds that
ended in an answer that somebody got, calls computed for nobody and failed calls, all and after the first minute.
"""

import argparse
import asyncio
import importlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import uvloop

from app.db.execution.result_rows import CallRow, Held, ResultWriter, Row
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
from app.services.execution.retries import CallFailedError
from app.services.execution.stop_signal import StopSignal
from benchmarks.whole_job import machine
from embedded.valkey import EmbeddedValkey

FIRST_MINUTE = 60.0
STARTING_SECONDS = 15.0
"""How much longer calls are made than is counted: a process imports the SDK before its first call."""
_BODY = json.dumps(
    {
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 200, "completion_tokens": 1, "total_tokens": 201},
    }
).encode()
_REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)


class SlotServer:
    """Answers as many calls at once as it has slots."""

    def __init__(self, slots: int, seconds: float, *, oblivious: bool) -> None:
        self._free, self._seconds, self._oblivious = slots, seconds, oblivious
        self._queue: deque[_Connection] = deque()
        self._began = 0.0
        self.answered: list[float] = []
        self.for_nobody: list[float] = []

    def take(self, connection: "_Connection") -> None:
        """Queues a call; time counts from the first one."""
        self._began = self._began or time.monotonic()
        self._queue.append(connection)
        self._serve()

    def _serve(self) -> None:
        while self._free and self._queue:
            connection = self._queue.popleft()
            if connection.is_gone and not self._oblivious:
                continue
            self._free -= 1
            asyncio.get_running_loop().call_later(self._seconds, self._finish, connection)

    def _finish(self, connection: "_Connection") -> None:
        self._free += 1
        ended = self.for_nobody if connection.is_gone else self.answered
        ended.append(time.monotonic() - self._began)
        if not connection.is_gone:
            connection.answer()
        self._serve()


class _Connection(asyncio.Protocol):
    def __init__(self, server: SlotServer) -> None:
        self._server = server
        self._received = b""
        self.is_gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        self.is_gone = True

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) == int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            self._received = b""
            self._server.take(self)

    def answer(self) -> None:
        self._transport.write(_REPLY)


class _Counting:
    """A writer that keeps when calls failed."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.failed: list[float] = []

    async def write(self, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
        now = time.monotonic() - self.began
        for rows in batch.values():
            self.failed += [now for row in rows if isinstance(row, CallRow) and row.outcome != "ok"]
        return set()


async def _serve(options: argparse.Namespace) -> None:
    """Serves until standard input ends, and then prints the moments at which calls ended."""
    server = SlotServer(options.slots, options.call_seconds, oblivious=options.oblivious)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: _Connection(server), "127.0.0.1", 0, backlog=4096)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(json.dumps({"answered": server.answered, "for_nobody": server.for_nobody}))


async def _call(options: argparse.Namespace) -> None:
    """Keeps calls waiting for so many seconds, and prints the moments at which attempts failed."""
    stub = f"{{kind: openai, base_url: '{options.url}', api_key_env: KEY, models: [m]}}"
    importlib.import_module(PRICE_LISTS)  # as a worker does before it takes calls
    connections = load_connections(f"connections: {{stub: {stub}}}", {"KEY": "sk-any"}, None)
    gateway, counting = Gateway(connections), _Counting()
    redis = RedisServer(options.redis).client(5)
    limiter = RedisRateLimiter(redis, connections.limits, deadline_seconds=options.deadline)
    writer = BatchWriter(cast("ResultWriter", counting))
    caller = ModelCaller(
        chat=gateway,
        limiter=limiter,
        prices=GenaiPriceBook(connections),
        writer=writer,
        attempts=12,
        deadline_seconds=options.deadline,
        in_flight=lambda *_: options.in_flight,
        budgets=cast("Any", None),
        first_calls=FirstCalls(cast("Any", None)),
    )
    model = Model("m", "stub", "m", ModelParameters())
    claim, stop = Claim(1, 1, "default", "job_0123456789abcdefghjkmnpqrs", 1, 0, 0, 1), StopSignal()
    stop.seen_active(time.monotonic() + 3600)

    async def repeat(number: int) -> None:
        while True:
            try:
                key = CallKey(Stage.JUDGING, 0, number, 0, 0, 0)
                await caller.call(model, None, "How are you?", key=key, claim=claim, stop=stop)
            except CallFailedError:
                continue

    await gateway.prepare("stub", "default")
    async with writer.running():
        running = [asyncio.create_task(repeat(number)) for number in range(options.in_flight)]
        await asyncio.sleep(options.seconds + STARTING_SECONDS)
        print(json.dumps(counting.failed), flush=True)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _run(options: argparse.Namespace, slots: int, workers: int, *, oblivious: bool) -> str:
    call_seconds = str(options.call_seconds)
    command = [sys.executable, "-m", "benchmarks.slots", "--deadline", str(options.deadline)]
    command += ["--seconds", str(options.seconds), "--in-flight", str(options.in_flight)]
    serve = ["--part", "serve", "--slots", str(slots), "--call-seconds", call_seconds]
    if oblivious:
        serve.append("--oblivious")
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedValkey(Path(directory) / "valkey") as valkey,
        subprocess.Popen(
            [*command, *serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server,
    ):
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        call = ["--part", "call", "--url", url, "--redis", valkey.url()]
        callers = [
            subprocess.Popen([*command, *call], stdout=subprocess.PIPE, text=True) for _ in range(workers)
        ]
        failed = [moment for caller in callers for moment in json.loads(caller.communicate()[0])]
        ended = json.loads(server.communicate("")[0])
    begin = min(options.warm_seconds, options.seconds / 2)
    useful = sum(begin <= moment < options.seconds for moment in ended["answered"])
    used = useful * options.call_seconds / (slots * (options.seconds - begin))
    for_nobody = [moment for moment in ended["for_nobody"] if moment < options.seconds]
    later, failed_later = (sum(moment > FIRST_MINUTE for moment in each) for each in (for_nobody, failed))
    kind = "oblivious" if oblivious else "notices"
    return (
        f"| {slots} | {kind} | {workers} | {len(ended['answered'])} | {used:.1%} "
        f"| {len(for_nobody)} | {later} | {len(failed)} | {failed_later} |"
    )


def main() -> None:
    """Prints a line of a table for each server and number of workers."""
    options = _parser().parse_args()
    if options.part:
        uvloop.run(_PARTS[options.part](options))
        return
    print(f"{machine()}, load average before {os.getloadavg()[0]:.1f}\n")
    print(
        f"calls of {options.call_seconds:g} s, {options.seconds:g} s each, used from {options.warm_seconds:g} s on\n"
    )
    print(
        "| slots | that a caller hung up, the server | workers | answered | used | for nobody | after the first minute | failed "
        "| after the first minute |"
    )
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    runs = list(itertools.product(options.each_slots, (False, True), options.workers))
    with ThreadPoolExecutor(len(runs) if options.together else 1) as runners:
        rows = runners.map(lambda run: _run(options, run[0], run[2], oblivious=run[1]), runs)
        for row in rows:
            print(row, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each-slots", type=int, nargs="+", default=[1, 4, 64], help="slots of the servers")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="worker processes")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long each server is called")
    parser.add_argument("--warm-seconds", type=float, default=60.0, help="from when on its use is measured")
    parser.add_argument("--call-seconds", type=float, default=2.0, help="what a call takes")
    parser.add_argument("--deadline", type=float, default=120.0, help="when a call is given up")
    parser.add_argument("--together", action="store_true", help="all servers beside each other")
    parser.add_argument("--in-flight", type=int, default=512, help="calls at once of each worker")
    for hidden in ("--part", "--url", "--redis"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--slots", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--oblivious", action="store_true", help=argparse.SUPPRESS)
    return parser


_PARTS = {"serve": _serve, "call": _call}

if __name__ == "__main__":
    main()
