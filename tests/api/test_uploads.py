"""Bodies whose last byte never comes, of clients with and without a key, shut off nobody else's uploads."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from app.api.http.limits import BODIES_HELD, KEY_BODIES
from app.domain.keys.api_key import Scope
from app.settings import Settings
from embedded.valkey import EmbeddedValkey
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import Service, job_body
from tests.conftest import scratch_directory
from tests.databases import Databases

MOST_BYTES: int = Settings.model_fields["max_body_bytes"].default


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with (
        databases.new("uploads", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        guarded(directory, url, valkey.url()) as running,
    ):
        yield running


@contextlib.asynccontextmanager
async def all_but_one_byte(service: Service, path: str, *headers: str) -> AsyncIterator[list[int]]:
    """Requests whose bodies lack a byte, more than may be held; how those were answered that are not waited for."""
    parts = urlsplit(service.url)
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: {parts.netloc}",
        f"content-length: {MOST_BYTES}",
        *headers,
        "",
        "",
    ]
    begin, answered = "\r\n".join(lines).encode(), []
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(BODIES_HELD):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            stack.callback(writer.close)
            with contextlib.suppress(ConnectionError, TimeoutError):
                writer.write(begin + b" " * (MOST_BYTES - 1))
                await asyncio.wait_for(writer.drain(), 1)
            with contextlib.suppress(ConnectionError, TimeoutError):
                status = await asyncio.wait_for(reader.readline(), 0.3)
                answered.append(int(status.split()[1]) if status else 0)
        yield answered


async def submitted(service: Service, headers: dict[str, str]) -> httpx2.Response:
    return await asyncio.to_thread(service.post, "/v1/jobs", job_body(), headers=headers)


class TestHeldBodies:
    async def test_sixteen_sign_ins_shut_off_nobody(self, service: Service) -> None:
        submit = bearer(KeyMaker(service.database_url).make(Scope.SUBMIT))
        form = "content-type: application/x-www-form-urlencoded"
        async with all_but_one_byte(service, "/sign-in", form) as answered:
            assert set(answered) <= {413, 0}
            assert (await submitted(service, submit)).status_code == 202

    async def test_sixteen_plans_of_a_read_key_shut_off_nobody(self, service: Service) -> None:
        keys = KeyMaker(service.database_url)
        read, submit, other = (
            bearer(keys.make(Scope.READ)),
            bearer(keys.make(Scope.SUBMIT)),
            bearer(keys.make(Scope.SUBMIT, tenant="other")),
        )
        as_json = ("content-type: application/json", f"authorization: {read['Authorization']}")
        async with all_but_one_byte(service, "/v1/jobs/plan", *as_json) as answered:
            assert answered.count(429) == BODIES_HELD - KEY_BODIES
            assert (await submitted(service, submit)).status_code == 202
            assert (await submitted(service, other)).status_code == 202
