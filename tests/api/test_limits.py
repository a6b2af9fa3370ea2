"""What is refused before any work is done, and clients that take their time."""

import asyncio
import contextlib
import io
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp
import httpx2
import psutil  # type: ignore[import-untyped] # it comes without types
import pytest
import requests

from app.api.http.limits import HEADER_BYTES, MOST_HEADERS, STALLED_SECONDS, URL_BYTES
from app.serve import HEAD_BYTES
from app.settings import Settings
from tests.api.service import MOST_STREAMS, Json, Service, job_body
from tests.faults.trial import report
from tests.observe import PATIENCE

MOST_BYTES: int = Settings.model_fields["max_body_bytes"].default
MEBIBYTE = 1 << 20

JSON, CSV, LINES = "application/json", "text/csv", "application/jsonl"
FORM = "application/x-www-form-urlencoded"
BODIES = [
    ("/v1/jobs", JSON),
    ("/v1/jobs/plan", JSON),
    ("/v1/comparisons", JSON),
    ("/v1/question-sets", JSON),
    ("/v1/persona-sets", JSON),
    ("/v1/persona-sets", CSV),
    ("/v1/persona-sets", LINES),
    ("/v1/annotations", JSON),
    ("/v1/annotations", CSV),
    ("/v1/labelling-rounds", JSON),
    ("/v1/webhooks", JSON),
    ("/new", FORM),
]
"""Where bodies are read, and as what."""


def sent(api: Service, path: str, media_type: str, size: int, *, chunked: bool) -> httpx2.Response:
    """The answer to a body of so many bytes, which are nothing that the route could use."""
    content = b"x" * size
    pieces = (content[at : at + MEBIBYTE] for at in range(0, size, MEBIBYTE))
    headers = {"content-type": media_type}
    with httpx2.Client(base_url=api.url, timeout=PATIENCE, trust_env=False) as client:
        return client.post(path, content=pieces if chunked else content, headers=headers)


def resident(api: Service) -> int:
    """Bytes of memory that the API's process has."""
    assert api.process is not None
    return int(psutil.Process(api.process.pid).memory_info().rss)


async def connected(api: Service) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(api.url)
    return await asyncio.open_connection(parts.hostname, parts.port)


def head(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"POST {path} HTTP/1.1", "host: 127.0.0.1", *headers, "", ""]).encode()


class TestBodies:
    @pytest.mark.parametrize("chunked", [False, True])
    @pytest.mark.parametrize(("path", "media_type"), BODIES)
    def test_one_byte_more_than_the_limit_is_too_much(
        self, running_api: Service, path: str, media_type: str, chunked: bool
    ) -> None:
        allowed = sent(running_api, path, media_type, MOST_BYTES, chunked=chunked)
        assert allowed.status_code in {200, 400, 422}
        before = resident(running_api)
        for _ in range(3):
            refused = sent(running_api, path, media_type, MOST_BYTES + 1, chunked=chunked)
            assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
        assert resident(running_api) - before < 50 * MEBIBYTE


def by_requests(url: str, body: bytes) -> list[str]:
    with requests.Session() as session:
        session.trust_env = False
        return [
            session.post(url, body, headers={"content-type": JSON}, timeout=PATIENCE).text for _ in range(2)
        ]


def by_httpx(url: str, body: bytes) -> list[str]:
    with httpx2.Client(timeout=PATIENCE, trust_env=False) as client:
        return [client.post(url, content=body, headers={"content-type": JSON}).text for _ in range(2)]


def by_aiohttp(url: str, body: bytes) -> list[str]:
    async def answers() -> list[str]:
        async with aiohttp.ClientSession(headers={"content-type": JSON}) as session:
            found = []
            for _ in range(2):
                async with session.post(url, data=io.BytesIO(body)) as answer:
                    found.append(await answer.text())
            return found

    return asyncio.run(answers())


def by_urllib(url: str, body: bytes) -> list[str]:
    """Asks to close the connection, and sends all before it reads."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as refused:
        opener.open(urllib.request.Request(url, body, {"content-type": JSON}), timeout=PATIENCE)
    with refused.value as answer:
        return [answer.read().decode()]


def by_curl(url: str, body: bytes) -> list[str]:
    sent = ["--data-binary", "@-", "-H", f"content-type: {JSON}", url]
    return [
        subprocess.run(
            ["curl", "-sS", "--noproxy", "*", *way, *sent], input=body, stdout=subprocess.PIPE, check=True
        ).stdout.decode()
        for way in ([], ["-H", "Expect:"], ["-H", "Connection: close"])
    ]


def by_node(url: str, body: bytes) -> list[str]:
    fetch = (
        "const body = require('fs').readFileSync(0), headers = {'content-type': 'application/json'};"
        "(async () => { const found = []; for (const _ of [1, 2])"
        " found.push(await (await fetch(process.argv[1], {method: 'POST', headers, body})).text());"
        " console.log(JSON.stringify(found)) })()"
    )
    told = subprocess.run(["node", "-e", fetch, url], input=body, stdout=subprocess.PIPE, check=True)
    found: list[str] = json.loads(told.stdout)
    return found


# aiohttp does not wait for the end of a connection whose body it could not send whole; asyncio then warns of it.
UNENDED = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
CLIENTS = [by_requests, by_httpx, pytest.param(by_aiohttp, marks=UNENDED), by_urllib, by_curl, by_node]


class TestClients:
    @pytest.mark.parametrize("megabytes", [11, 100])
    @pytest.mark.parametrize("client", CLIENTS)
    def test_each_reads_why_its_body_is_refused(
        self, running_api: Service, client: Callable[[str, bytes], list[str]], megabytes: int
    ) -> None:
        program = client.__name__.removeprefix("by_")
        if program in {"curl", "node"} and shutil.which(program) is None:
            pytest.skip(f"needs {program}")
        body = b"x" * (megabytes * 1_000_000)
        for answer in client(f"{running_api.url}/v1/jobs", body):
            assert json.loads(answer)["code"] == "body_too_large"


class TestHeads:
    def test_a_url_is_bounded(self, running_api: Service) -> None:
        rest = URL_BYTES - len("/v1/jobs") - len("after=")
        assert running_api.get("/v1/jobs?after=" + "x" * rest).status_code == 422
        assert running_api.get("/v1/jobs?after=" + "x" * (rest + 1)).status_code == 414

    def test_headers_are_bounded(self, running_api: Service) -> None:
        many = {f"x-{n}": "1" for n in range(MOST_HEADERS)}
        assert running_api.get("/v1/jobs", headers=many).status_code == 431
        assert running_api.get("/v1/jobs", headers={"x": "1" * HEADER_BYTES}).status_code == 431
        assert running_api.get("/v1/jobs", headers={"x": "1" * (HEADER_BYTES - 1000)}).status_code == 200

    async def test_a_header_without_an_end_is_cut_off(self, running_api: Service) -> None:
        reader, writer = await connected(running_api)
        writer.write(b"GET /v1/jobs HTTP/1.1\r\nx: " + b"y" * HEAD_BYTES)
        answer = await reader.read(1024)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 431 ")


class TestStreams:
    async def test_a_tenant_has_so_many_at_a_time(self, running_api: Service) -> None:
        job = await asyncio.to_thread(running_api.submit, job_body())
        path = f"/v1/jobs/{job['id']}/events"
        async with (
            httpx2.AsyncClient(base_url=running_api.url, trust_env=False) as client,
            contextlib.AsyncExitStack() as streams,
        ):
            for _ in range(MOST_STREAMS):
                assert (await streams.enter_async_context(client.stream("GET", path))).status_code == 200
            for other in (path, "/live/jobs"):
                refused = await asyncio.to_thread(running_api.get, other)
                assert (refused.status_code, refused.json()["code"]) == (429, "too_many_streams")
                assert "retry-after" in refused.headers
            for free in (f"/v1/jobs/{job['id']}/report", "/v1/annotations"):
                assert (await asyncio.to_thread(running_api.get, free)).status_code == 200
            assert (await asyncio.to_thread(running_api.job, job["id"]))["status"] == "queued"


async def slowest_poll(api: Service, job: Json, clients: int, polls: int) -> float:
    """The longest of some polls, in seconds, while clients trickle: every other one its head, the others their bodies."""
    ready = asyncio.Event()
    waiting = clients

    async def trickle(number: int) -> None:
        nonlocal waiting
        begin = head("/v1/jobs", f"content-type: {JSON}", "content-length: 1000000")
        while True:
            _, writer = await connected(api)
            writer.write(begin[:20] if number % 2 else begin)
            waiting -= 1
            if not waiting:
                ready.set()
            with contextlib.closing(writer), contextlib.suppress(ConnectionError):
                while True:  # until it is cut off, as it has to be; then it comes again
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.5)

    slow = [asyncio.create_task(trickle(number)) for number in range(clients)]
    longest = 0.0
    async with (
        httpx2.AsyncClient(base_url=api.url, timeout=PATIENCE, trust_env=False) as client,
        asyncio.timeout(PATIENCE),
    ):
        await ready.wait()
        for _ in range(polls):
            began = time.perf_counter()
            assert (await client.get(f"/v1/jobs/{job['id']}")).status_code == 200
            longest = max(longest, time.perf_counter() - began)
            await asyncio.sleep(0.1)
    assert not any(task.done() for task in slow)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    return longest


class TestSlowClients:
    async def test_a_hundred_of_them_stop_no_poll(self, running_api: Service) -> None:
        job = await asyncio.to_thread(running_api.submit, job_body())
        assert await slowest_poll(running_api, job, 100, 10) < STALLED_SECONDS

    @pytest.mark.long
    async def test_a_thousand_of_them_stop_no_poll(self, running_api: Service) -> None:
        job = await asyncio.to_thread(running_api.submit, job_body())
        longest = await slowest_poll(running_api, job, 1000, 200)
        report("slow clients", seed=0, n=200, of=200, longest_poll_ms=round(longest * 1000))
        assert longest < 5
