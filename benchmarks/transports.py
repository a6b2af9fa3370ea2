"""What one call costs the process that makes it, by the HTTP client under it.

`python -m benchmarks.transports`. Every client posts the same chat completion to the same server (another process, on
this machine) under uvloop, with as many calls in flight, and parses the reply. The clients take turns; what is printed
are medians over the repetitions, and ratios to bare aiohttp. Clients that are not installed are named as missing:
`uv pip install pyreqwest curl_cffi niquests` brings those that the service does without.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import resource
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

import uvloop

from app.domain.providers.model import ChatRequest, Model, ModelParameters
from app.llm.connections.connections import Connection
from app.llm.formats.openai import OpenAIChat
from benchmarks import stub_server

Post = Callable[[str], Awaitable[None]]
"""Makes one call, with an id."""

CLIENTS = ("sdk", "lean", "aiohttp", "pyreqwest", "curl_cffi", "niquests")
SCENARIOS = ("plain", "tls", "gzip", "closing")
PROMPT = "Rate the sentence. " * 40
REQUEST = ChatRequest(
    Model("m", "c", "m", ModelParameters(temperature=0.0)), None, PROMPT, "job/judging/1/a1"
)
HEADERS = {"content-type": "application/json", "authorization": "Bearer none"}


def main() -> None:
    """Runs the comparison, or one client of it."""
    options = _parser().parse_args()
    if options.client:
        print(json.dumps(uvloop.run(_run(options.client, options.url, options.calls, options.in_flight))))
    else:
        print(json.dumps(_compare(options), indent=2))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=4000, help="calls of one repetition")
    parser.add_argument("--in-flight", type=int, default=256, help="calls at once")
    parser.add_argument("--latency-ms", type=float, default=50.0, help="the server's time for one call")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--client", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    return parser


def _compare(options: argparse.Namespace) -> dict[str, Any]:
    clients = [c for c in CLIENTS if c in {"sdk", "lean"} or importlib.util.find_spec(c)]
    report: dict[str, Any] = {
        "load_average_before": [round(load, 2) for load in os.getloadavg()],
        "missing": [client for client in CLIENTS if client not in clients],
        "cpu_us_per_call": {},
        "ratio_to_aiohttp": {},
    }
    for scenario in options.scenarios:
        costs: dict[str, list[float]] = {client: [] for client in clients}
        with stub_server.running(scenario, options.latency_ms) as url:
            for _ in range(options.repetitions):
                for client in clients:
                    costs[client].append(_measured(client, url, options))
        medians = {client: median(found) for client, found in costs.items()}
        report["cpu_us_per_call"][scenario] = {name: round(cost) for name, cost in medians.items()}
        report["ratio_to_aiohttp"][scenario] = {
            name: round(cost / medians["aiohttp"], 2) for name, cost in medians.items()
        }
    return report


def _measured(client: str, url: str, options: argparse.Namespace) -> float:
    """CPU microseconds of one call, in a process of its own."""
    arguments = ["--client", client, "--url", url, "--calls", str(options.calls)]
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.transports", *arguments, "--in-flight", str(options.in_flight)],
        env=os.environ | {"SSL_CERT_FILE": str(stub_server.AUTHORITY)},
        stdout=subprocess.PIPE,
        check=True,
    )
    return float(json.loads(run.stdout))


async def _run(client: str, url: str, calls: int, in_flight: int) -> float:
    async with AsyncExitStack() as stack:
        post = await _CLIENTS[client](stack, url, in_flight)
        await post_all(post, in_flight, in_flight)  # connections are open and modules loaded before it counts
        before = cpu_seconds()
        await post_all(post, calls, in_flight)
        return (cpu_seconds() - before) / calls * 1e6


async def post_all(post: Post, calls: int, in_flight: int) -> None:
    """Makes so many calls, with so many in flight."""
    numbers = iter(range(calls))

    async def caller() -> None:
        for number in numbers:
            await post(f"job/judging/{number}/a1")

    await asyncio.gather(*(caller() for _ in range(min(in_flight, calls))))


def cpu_seconds() -> float:
    """CPU time of this process, user and system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _ours(stack: AsyncExitStack, url: str, transport: Any) -> Post:
    chat = OpenAIChat(Connection("c", "openai", url), transport)
    stack.push_async_callback(chat.close)

    async def post(request_id: str) -> None:
        reply = await chat.complete(
            ChatRequest(REQUEST.model, REQUEST.system, REQUEST.user, request_id, 60.0)
        )
        _check(reply.text)

    return post


async def _sdk(stack: AsyncExitStack, url: str, _: int) -> Post:
    return await _ours(stack, url, "sdk")


async def _lean(stack: AsyncExitStack, url: str, _: int) -> Post:
    return await _ours(stack, url, "lean")


async def aiohttp_post(stack: AsyncExitStack, url: str, in_flight: int) -> Post:
    """Calls by bare aiohttp."""
    import aiohttp
    import httpx2

    connector = aiohttp.TCPConnector(limit=in_flight, ssl=httpx2.create_ssl_context())
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))

    async def post(request_id: str) -> None:
        headers = HEADERS | {"x-client-request-id": request_id}
        async with session.post(f"{url}/chat/completions", data=_body(), headers=headers) as response:
            _check(_text(await response.read()))

    return post


async def _pyreqwest(stack: AsyncExitStack, url: str, _: int) -> Post:
    from pyreqwest.client import ClientBuilder  # type: ignore[import-not-found]

    builder = ClientBuilder().add_root_certificate_pem(stub_server.AUTHORITY.read_bytes())
    client = await stack.enter_async_context(builder.build())

    async def post(request_id: str) -> None:
        headers = HEADERS | {"x-client-request-id": request_id}
        request = client.post(f"{url}/chat/completions").headers(headers).body_bytes(_body()).build()
        _check(_text(bytes(await (await request.send()).bytes())))

    return post


async def _curl_cffi(stack: AsyncExitStack, url: str, in_flight: int) -> Post:
    from curl_cffi.requests import AsyncSession  # type: ignore[import-not-found]

    made = AsyncSession(max_clients=in_flight, verify=str(stub_server.AUTHORITY))
    session = await stack.enter_async_context(made)

    async def post(request_id: str) -> None:
        headers = HEADERS | {"x-client-request-id": request_id}
        response = await session.post(f"{url}/chat/completions", data=_body(), headers=headers)
        _check(_text(response.content))

    return post


async def _niquests(stack: AsyncExitStack, url: str, in_flight: int) -> Post:
    from niquests import AsyncSession  # type: ignore[import-not-found]

    made = AsyncSession(pool_maxsize=in_flight, disable_http2=True, disable_http3=True)
    session = await stack.enter_async_context(made)
    authority = str(stub_server.AUTHORITY)

    async def post(request_id: str) -> None:
        headers = HEADERS | {"x-client-request-id": request_id}
        posting = session.post(f"{url}/chat/completions", data=_body(), headers=headers, verify=authority)
        response = await posting
        _check(_text(response.content))

    return post


_CLIENTS: dict[str, Callable[[AsyncExitStack, str, int], Awaitable[Post]]] = {
    "sdk": _sdk,
    "lean": _lean,
    "aiohttp": aiohttp_post,
    "pyreqwest": _pyreqwest,
    "curl_cffi": _curl_cffi,
    "niquests": _niquests,
}


def _body() -> bytes:
    return json.dumps(OpenAIChat.body(REQUEST), ensure_ascii=False, separators=(",", ":")).encode()


def _text(body: bytes) -> str:
    text: str = json.loads(body)["choices"][0]["message"]["content"]
    return text


def _check(text: str) -> None:
    if text != stub_server.ANSWER:
        raise ValueError(f"not what the server says: {text!r}")


if __name__ == "__main__":
    main()
