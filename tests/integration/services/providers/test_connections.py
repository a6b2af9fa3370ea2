"""Connections made over the API: their keys at rest, their versions, and how workers come to know them."""

from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import InvalidJobError
from app.domain.jobs.resolve import look_up_model
from app.domain.providers.model import ChatRequest, Model
from app.guard.addresses import parse_networks
from app.guard.targets import Guard
from app.llm.batches.gateway import BatchGateway
from app.llm.connections import connections as llm_connections
from app.llm.connections.connections import load_connections
from app.llm.gateway import Gateway
from app.ports import FailureKind, ModelCallError
from app.services.errors import NameTakenError, NotFoundError
from app.services.providers.catalog import with_connections
from app.services.providers.connection_book import ConnectionBook, reseal
from app.services.providers.connections import (
    MOST_VERSIONS,
    ConnectionDependencies,
    change_connection,
    create_connection,
    delete_connection,
    find_connection,
    list_connections,
)
from app.vault.secret_cipher import SecretCipher
from tests.integration.jobs import TENANT, RecordingQueue, execute, submission_dependencies
from tests.integration.llm.conftest import OPENAI_REPLY
from tests.integration.llm.stub_provider import Answer, StubProvider
from tests.integration.llm.test_completions import REPLY as COMPLETIONS_REPLY
from tests.job_requests import a_model

Json = dict[str, Any]
OLD, NEW = bytes(32), bytes(range(32))
KEY = SecretStr("sk-proj-q7Zf3Lw9KxTb2YhVn5Rc")
OTHER_KEY = SecretStr("sk-proj-0000zzzz1111yyyy2222")
LOCAL = Guard(parse_networks("127.0.0.0/8"))
GOOD = Answer.of_json(OPENAI_REPLY)


def dependencies(engine: AsyncEngine, *keys: bytes) -> ConnectionDependencies:
    operator = load_connections("connections: {acme: {kind: openai, base_url: 'http://acme/v1'}}", {}, None)
    return ConnectionDependencies(engine, operator, LOCAL, SecretCipher(keys or (OLD,)))


@pytest.fixture
def deps(engine: AsyncEngine) -> ConnectionDependencies:
    return dependencies(engine)


def values(url: str, name: str = "lab", **changes: Any) -> Json:
    usual = {"name": name, "kind": "openai", "base_url": url, "limits": {"models": {}}, "prices": {}}
    return usual | {"models": None, "batches": False, "description": None} | changes


def request_to(connection: str) -> ChatRequest:
    return ChatRequest(Model("m", connection, "m"), None, "hello", "job_1/1", deadline_seconds=5.0)


class Worker:
    """What a worker process knows."""

    def __init__(self, deps: ConnectionDependencies) -> None:
        self.connections = load_connections(None, {}, "http://127.0.0.1:9")
        self.book = ConnectionBook(deps.engine, self.connections, deps.guard, deps.ring)
        self.gateway = Gateway(self.connections, "lean", self.book.fetch)

    async def call(self, connection: str, tenant: str = TENANT) -> None:
        request = request_to(connection)
        await self.gateway.prepare(connection, tenant)
        await self.gateway.complete(request)

    async def look(self) -> None:
        for name in await self.book.refresh():
            self.gateway.renew(name)


async def frozen(deps: ConnectionDependencies, tenant: str = TENANT, name: str = "lab") -> str:
    """How a job that is submitted now keeps the connection."""
    book = ConnectionBook(deps.engine, load_connections(None, {}, None), deps.guard, deps.ring)
    return (await book.of_tenant(tenant)).by_id[name].id


class TestKeys:
    async def test_a_key_is_not_in_its_row_nor_in_an_answer(self, deps: ConnectionDependencies) -> None:
        made = await create_connection(deps, TENANT, values("https://93.184.215.14/v1"), KEY)
        (row,) = await execute(deps.engine, "SELECT connections::text AS text FROM connections")
        for shown in (row.text, str(made), str(await list_connections(deps.engine, TENANT))):
            assert "q7Zf3Lw9" not in shown
        assert (made.key_set, made.key_hint) == (True, "n5Rc")

    async def test_it_is_sent_to_its_own_server(self, deps: ConnectionDependencies) -> None:
        async with StubProvider(GOOD) as provider:
            await create_connection(deps, TENANT, values(provider.url), KEY)
            await Worker(deps).call(await frozen(deps))
        assert provider.seen[0].headers["authorization"] == f"Bearer {KEY.get_secret_value()}"

    async def test_calls_ask_for_event_streams_once_the_connection_says_so(
        self, deps: ConnectionDependencies
    ) -> None:
        async with StubProvider(GOOD) as provider:
            await create_connection(deps, TENANT, values(provider.url), KEY)
            name, worker = await frozen(deps), Worker(deps)
            await worker.call(name)
            await change_connection(deps, TENANT, "lab", {"stream": True})
            await worker.look()
            await worker.call(name)
        assert [seen.json()["stream"] for seen in provider.seen] == [False, True]

    @pytest.mark.parametrize(
        "url", ["https://93.184.215.15/v1", "https://93.184.215.14:8443/v1", "http://127.0.0.1/v1"]
    )
    async def test_another_host_port_or_scheme_demands_it_anew(
        self, deps: ConnectionDependencies, url: str
    ) -> None:
        await create_connection(deps, TENANT, values("https://93.184.215.14/v1"), KEY)
        with pytest.raises(InvalidJobError) as refused:
            await change_connection(deps, TENANT, "lab", {"base_url": url})
        assert refused.value.errors[0].pointer == "/api_key"
        unchanged = await find_connection(deps.engine, TENANT, "lab")
        assert unchanged.base_url == "https://93.184.215.14/v1"
        changed = await change_connection(deps, TENANT, "lab", {"base_url": url, "api_key": None})
        assert (changed.base_url, changed.key_set) == (url, False)

    async def test_of_base_models_it_is_sent_with_their_wire_format(
        self, deps: ConnectionDependencies
    ) -> None:
        async with StubProvider(Answer.of_json(COMPLETIONS_REPLY)) as provider:
            await create_connection(deps, TENANT, values(provider.url, kind="completions"), KEY)
            await Worker(deps).call(await frozen(deps))
        (seen,) = provider.seen
        assert seen.line.startswith("POST /completions ")
        assert "hello" in seen.json()["prompt"]
        assert seen.headers["authorization"] == f"Bearer {KEY.get_secret_value()}"

    async def test_another_path_does_not(self, deps: ConnectionDependencies) -> None:
        made = await create_connection(deps, TENANT, values("https://93.184.215.14/v1"), KEY)
        changed = await change_connection(deps, TENANT, "lab", {"base_url": "https://93.184.215.14/v2"})
        assert changed.key_set
        assert changed.version != made.version

    async def test_one_that_was_moved_to_another_row_cannot_be_read(
        self, deps: ConnectionDependencies
    ) -> None:
        await create_connection(deps, TENANT, values("https://93.184.215.14/v1"), KEY)
        async with StubProvider(GOOD) as thief:
            await create_connection(deps, TENANT, values(thief.url, "mine"), OTHER_KEY)
            await execute(
                deps.engine,
                "UPDATE connections SET sealed_key = (SELECT sealed_key FROM connections WHERE name = 'lab')",
            )
            with pytest.raises(ModelCallError, match="something else") as refused:
                await Worker(deps).call(await frozen(deps, name="mine"))
        assert (refused.value.kind, refused.value.code) == (FailureKind.JOB, "key_unreadable")
        assert thief.connections == 0

    async def test_without_anything_to_encrypt_with_none_is_taken(self, engine: AsyncEngine) -> None:
        deps = ConnectionDependencies(engine, load_connections(None, {}, None), LOCAL, SecretCipher(()))
        with pytest.raises(InvalidJobError) as refused:
            await create_connection(deps, TENANT, values("https://93.184.215.14/v1"), KEY)
        assert "ASSAY_ENCRYPTION_KEYS" in refused.value.errors[0].message
        made = await create_connection(deps, TENANT, values("https://93.184.215.14/v1"), None)
        assert not made.key_set

    async def test_keys_are_rotated_by_listing_two(self, engine: AsyncEngine) -> None:
        async with StubProvider(GOOD, GOOD) as provider:
            await create_connection(dependencies(engine, OLD), TENANT, values(provider.url), KEY)
            name = await frozen(dependencies(engine, OLD))
            assert await reseal(engine, SecretCipher([NEW, OLD])) == 1
            assert await reseal(engine, SecretCipher([NEW, OLD])) == 0
            await Worker(dependencies(engine, NEW)).call(name)
        assert provider.connections == 1


class TestNames:
    @pytest.mark.parametrize("name", ["acme", "simulated", "simulated-anthropic"])
    async def test_the_operators_are_his(self, deps: ConnectionDependencies, name: str) -> None:
        with pytest.raises(NameTakenError):
            await create_connection(deps, TENANT, values("https://93.184.215.14/v1", name), None)

    async def test_tenants_do_not_meet(self, deps: ConnectionDependencies) -> None:
        async with StubProvider(GOOD) as mine, StubProvider(GOOD) as theirs:
            await create_connection(deps, TENANT, values(mine.url), KEY)
            await create_connection(deps, "other", values(theirs.url), OTHER_KEY)
            worker = Worker(deps)
            await worker.call(await frozen(deps))
            await worker.call(await frozen(deps, "other"), "other")
        assert mine.seen[0].headers["authorization"] == f"Bearer {KEY.get_secret_value()}"
        assert theirs.seen[0].headers["authorization"] == f"Bearer {OTHER_KEY.get_secret_value()}"
        with pytest.raises(NameTakenError):
            await create_connection(deps, TENANT, values("https://93.184.215.14/v1"), None)
        await delete_connection(deps.engine, TENANT, "lab")
        with pytest.raises(NotFoundError):
            await find_connection(deps.engine, TENANT, "lab")
        assert (await find_connection(deps.engine, "other", "lab")).name == "lab"

    @pytest.mark.parametrize("met", [True, False], ids=["met by the worker", "unmet"])
    async def test_a_worker_calls_a_version_for_no_tenant_but_its_own(
        self, deps: ConnectionDependencies, met: bool
    ) -> None:
        async with StubProvider(GOOD) as theirs:
            await create_connection(deps, "other", values(theirs.url), OTHER_KEY)
            worker, name = Worker(deps), await frozen(deps, "other")
            if met:
                await worker.call(name, "other")
            with pytest.raises(ModelCallError, match="no connection") as refused:
                await worker.call(name)
            with pytest.raises(ModelCallError, match="no connection"):
                await BatchGateway(worker.connections, worker.book.fetch).prepare(name, TENANT)
        assert refused.value.kind is FailureKind.JOB
        assert len(theirs.seen) == met

    async def test_a_job_can_name_neither_a_version_nor_another_tenants_connection(
        self, deps: ConnectionDependencies
    ) -> None:
        await create_connection(deps, "other", values("https://93.184.215.14/v1"), KEY)
        theirs = await frozen(deps, "other")
        book = ConnectionBook(deps.engine, load_connections(None, {}, None), deps.guard, deps.ring)
        await book.of_tenant("other")  # this process has met it
        catalog = with_connections(
            submission_dependencies(deps.engine, RecordingQueue()).catalog, await book.of_tenant(TENANT)
        )
        for connection in ("lab", theirs):
            _, problem = look_up_model(a_model(f"{connection}/m"), catalog)
            assert problem is not None
            assert "unknown connection" in problem


class TestMemory:
    async def test_a_process_keeps_those_in_mind_that_it_used_last(
        self, deps: ConnectionDependencies, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(llm_connections, "MOST_LEARNED", 2)
        async with StubProvider(*[GOOD] * 5) as provider:
            for name in ("first", "second", "third"):
                await create_connection(deps, TENANT, values(provider.url, name), KEY)
            first, second, third = [await frozen(deps, name=name) for name in ("first", "second", "third")]
            worker = Worker(deps)
            for name in (first, second, first, third):
                await worker.call(name)
            known = [worker.connections.get(name) is not None for name in (first, second, third)]
            assert known == [True, False, True]
            assert await worker.book.refresh() == [second]
            await change_connection(deps, TENANT, "second", {"api_key": OTHER_KEY})
            await worker.call(second)  # its client was still there, with the key of before
        assert provider.seen[-1].headers["authorization"] == f"Bearer {OTHER_KEY.get_secret_value()}"


class TestChanges:
    async def test_a_new_key_reaches_workers_and_their_jobs(self, deps: ConnectionDependencies) -> None:
        async with StubProvider(GOOD, GOOD) as provider:
            await create_connection(deps, TENANT, values(provider.url), KEY)
            worker, name = Worker(deps), await frozen(deps)
            await worker.call(name)
            await change_connection(deps, TENANT, "lab", {"api_key": OTHER_KEY})
            await worker.look()
            await worker.gateway.complete(request_to(name))  # had been prepared before
        assert provider.seen[1].headers["authorization"] == f"Bearer {OTHER_KEY.get_secret_value()}"

    async def test_jobs_under_way_keep_the_url(self, deps: ConnectionDependencies) -> None:
        async with StubProvider(GOOD, GOOD) as before, StubProvider(GOOD) as after:
            await create_connection(deps, TENANT, values(before.url), KEY)
            worker, name = Worker(deps), await frozen(deps)
            await worker.call(name)
            await change_connection(deps, TENANT, "lab", {"base_url": after.url, "api_key": OTHER_KEY})
            await worker.look()
            await worker.call(name)
            await worker.call(await frozen(deps))
        assert [seen.headers["authorization"] for seen in before.seen] == [
            f"Bearer {KEY.get_secret_value()}"
        ] * 2
        assert after.seen[0].headers["authorization"] == f"Bearer {OTHER_KEY.get_secret_value()}"

    async def test_one_that_is_deleted_stops_its_jobs(self, deps: ConnectionDependencies) -> None:
        async with StubProvider(GOOD) as provider:
            await create_connection(deps, TENANT, values(provider.url), KEY)
            worker, name = Worker(deps), await frozen(deps)
            await worker.call(name)
            await delete_connection(deps.engine, TENANT, "lab")
            await worker.look()
            with pytest.raises(ModelCallError, match="no connection") as refused:
                await worker.call(name)
        assert refused.value.kind is FailureKind.JOB
        assert len(provider.seen) == 1

    async def test_old_versions_do_not_heap_up(self, deps: ConnectionDependencies) -> None:
        await create_connection(deps, TENANT, values("https://93.184.215.14/v0"), KEY)
        first = await frozen(deps)
        for n in range(MOST_VERSIONS):
            await change_connection(deps, TENANT, "lab", {"base_url": f"https://93.184.215.14/v{n + 1}"})
        (row,) = await execute(deps.engine, "SELECT count(*) AS n FROM connections")
        assert row.n == MOST_VERSIONS
        assert await Worker(deps).book.fetch(first, TENANT) is None
