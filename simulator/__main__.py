"""`python -m simulator`: runs the simulated provider until it is told to stop."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

from simulator.admin import PREFIX, Admin
from simulator.config import Config
from simulator.ledger import Ledger
from simulator.provider import Provider
from simulator.state import State
from simulator.wire import Answer, Departures, HttpConnection, Request

_BACKLOG = 2048
_HELP = {
    "seed": "decides all texts, errors and jitter",
    "latency_ms": "mean time between a request and its reply",
    "jitter_ms": "latency is uniform in latency ± jitter",
    "requests_per_minute": "rate limit of each model, 0 for none",
    "burst": "requests that an idle model accepts at once, 0 for a minute's",
    "quota": "chat requests that are answered before the quota is used up, 0 for no quota",
    "error_rate": "share of requests that fail with a 5xx status",
    "length_factor": "multiplies the number of sentences of a response",
    "position_bias": "how likely the last of several sentences is scored one too high",
    "order_bias": "how likely a judge answers the option that stands before the right one",
    "batch_ms": "time that a batch takes",
    "batch_limit": "requests in batches of OpenAI's format that may wait at a time, 0 for no limit",
    "batch_expired": "share of the requests in batches that expire",
    "openai_profile": "provider profile of requests in OpenAI's format whose path names none",
    "anthropic_profile": "the same of requests in Anthropic's format",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the command line and serves until SIGTERM or SIGINT."""
    options = _parser().parse_args(arguments)
    try:
        config = Config(**{field.name: getattr(options, field.name) for field in fields(Config)})
    except ValueError as problem:
        sys.exit(f"simulator: {problem}")
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        try:
            runner.run(_serve(config, options))
        except OSError as problem:
            sys.exit(f"simulator: {problem}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=sys.modules["simulator"].__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 for any free port")
    parser.add_argument("--port-file", type=Path, help="where to write the port once it is listening")
    parser.add_argument("--ledger", type=Path, help="JSONL file to which every request is appended")
    for field in fields(Config):
        flag = f"--{field.name.replace('_', '-')}"
        parser.add_argument(flag, type=type(field.default), default=field.default, help=_HELP[field.name])
    return parser


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop  # noqa: PLC0415  # does not exist on Windows

    return uvloop.Loop


async def _serve(config: Config, options: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    if sys.platform != "win32":
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, stop.set)
    ledger = Ledger(options.ledger) if options.ledger else None
    connections: set[HttpConnection] = set()
    state = State(config, ledger)
    provider, admin = Provider(state), Admin(state)

    def handle(request: Request) -> Answer:
        return (admin if request.path.startswith(PREFIX) else provider).handle(request)

    connect = partial(HttpConnection, handle, Departures(), connections)
    server = await loop.create_server(connect, options.host, options.port, backlog=_BACKLOG)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"simulator listening on http://{options.host}:{port}\n")
    sys.stdout.flush()
    if options.port_file:
        _write_whole(options.port_file, f"{port}\n")
    await stop.wait()
    server.close()
    for connection in list(connections):
        connection.close()
    # The closed connections tell the ledger what stays unanswered.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if ledger is not None:
        ledger.close()


def _write_whole(path: Path, text: str) -> None:
    """Writes a file that nobody can see half-written."""
    draft = path.with_name(f"{path.name}.draft")
    draft.write_text(text, encoding="ascii")
    draft.replace(path)


if __name__ == "__main__":
    main()
