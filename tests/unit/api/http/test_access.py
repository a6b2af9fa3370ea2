"""A service without keys: whom it lets in."""

import json
from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from app.api.http.access import AuthMiddleware
from app.api.http.pace import ChangePace


class NoKeys:
    """A service's keys, as long as there are none."""

    async def any_exist(self) -> bool:
        return False


async def asked_at(
    server: tuple[str, int | None] | None, *headers: tuple[bytes, bytes]
) -> list[MutableMapping[str, Any]]:
    """What is answered to a request that arrived at an address; nothing if it was let in."""
    sent: list[MutableMapping[str, Any]] = []

    async def inside(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["state"]["caller"].tenant == "default"

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    services = SimpleNamespace(keyring=NoKeys(), change_pace=ChangePace(5))
    app = SimpleNamespace(state=SimpleNamespace(services=services))
    scope = {"type": "http", "method": "GET", "path": "/v1/jobs", "query_string": b"", "headers": [*headers]}
    await AuthMiddleware(inside)(scope | {"server": server, "app": app, "state": {}}, receive, send)
    return sent


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "::1", "::ffff:127.0.0.1"])
async def test_everybody_on_this_machine(host: str) -> None:
    assert await asked_at((host, 8321)) == []


@pytest.mark.parametrize("server", [("10.0.0.5", 8321), ("172.18.0.3", 8321), ("/run/a.sock", None), None])
async def test_nobody_else_whatever_address_the_server_listens_on(
    server: tuple[str, int | None] | None,
) -> None:
    start, body = await asked_at(server)
    assert start["status"] == 403
    problem = json.loads(body["body"])
    assert problem["code"] == "no_keys_yet"
    assert "assay keys create" in problem["detail"]


@pytest.mark.parametrize(
    "header",
    [
        (b"x-forwarded-for", b"203.0.113.9"),
        (b"forwarded", b"for=203.0.113.9"),
        (b"x-real-ip", b"203.0.113.9"),
    ],
)
async def test_nobody_through_a_proxy_on_this_machine(header: tuple[bytes, bytes]) -> None:
    start, _ = await asked_at(("127.0.0.1", 8321), header)
    assert start["status"] == 403
