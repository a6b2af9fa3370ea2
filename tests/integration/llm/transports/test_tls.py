"""TLS and proxies: both transports trust, refuse and go the same ways."""

import asyncio
import ssl
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from app.ports import ModelCallError
from tests.integration.llm.conftest import KEY, Ask, good
from tests.integration.llm.stub_provider import StubProvider
from tests.integration.llm.transports.raw_server import RawServer, says

pytestmark = pytest.mark.usefixtures("rests_no_more")
CERTIFICATES = Path(__file__).parent / "certificates"


def to(url: str, transport: TransportKind) -> Gateway:
    return Gateway(Connections({"openai": Connection("openai", "openai", url, SecretStr(KEY))}), transport)


class Tls:
    """A server for ``localhost`` and the names that it was asked for."""

    def __init__(self) -> None:
        self.names: list[str | None] = []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(CERTIFICATES / "localhost.pem", CERTIFICATES / "localhost.key")
        self.context.sni_callback = lambda _, name, __: self.names.append(name)


class TestTls:
    async def test_trusts_whom_the_environment_trusts(
        self, transport: TransportKind, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "authority.pem"))
        tls = Tls()
        async with RawServer(says(*[good("openai").wire()] * 3), tls=tls.context) as server:
            gateway = to(f"https://localhost:{server.port}/v1", transport)
            for _ in range(3):
                assert (await gateway.complete(ask())).text == "I love parties."
            await gateway.close()
            opened = 1 if transport == "lean" else 3
            assert (server.connections, tls.names) == (opened, ["localhost"] * opened)

    async def test_trusts_nobody_else(self, transport: TransportKind, ask: Ask) -> None:
        async with RawServer(says(good("openai").wire()), tls=Tls().context) as server:
            await self.refused(to(f"https://localhost:{server.port}/v1", transport), ask)

    async def test_wants_the_certificate_to_name_the_host(
        self, transport: TransportKind, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "authority.pem"))
        async with RawServer(says(good("openai").wire()), tls=Tls().context) as server:
            await self.refused(to(f"https://127.0.0.1:{server.port}/v1", transport), ask)

    async def test_is_not_given_up_where_the_server_speaks_none(
        self, transport: TransportKind, ask: Ask
    ) -> None:
        async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(good("openai").wire())

        async with RawServer(plain) as server:
            await self.refused(to(f"https://localhost:{server.port}/v1", transport), ask)

    async def refused(self, gateway: Gateway, ask: Ask) -> None:
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(deadline=30.0))
        await gateway.close()
        assert (raised.value.code, raised.value.maybe_paid) == ("connection_failed", False)


class TestProxies:
    @pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
    async def test_are_gone_through(
        self, variable: str, transport: TransportKind, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with StubProvider(good("openai")) as proxy:
            monkeypatch.setenv(variable, proxy.url)
            gateway = to("http://provider.invalid/v1", transport)
            assert (await gateway.complete(ask())).text == "I love parties."
            await gateway.close()
            assert proxy.seen[0].line == "POST http://provider.invalid/v1/chat/completions HTTP/1.1"

    async def test_are_passed_by_for_the_hosts_that_the_environment_exempts(
        self, transport: TransportKind, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with StubProvider(good("openai")) as proxy, StubProvider(good("openai")) as stub:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            gateway = to(f"{stub.url}/v1", transport)
            await gateway.complete(ask())
            await gateway.close()
            assert (len(stub.seen), proxy.seen) == (1, [])
