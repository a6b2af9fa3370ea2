"""Tries the operator's connections, at no cost: whether each server answers and takes its key."""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus

from app.domain.providers.failure import cause, remedy
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from app.ports import FailureKind, ModelCallError
from app.terminal.findings import Finding

PROBE_SECONDS = 5.0
TAKEN_STATUSES = frozenset({400, 409, 413, 422, 429})
"""How a server refuses an empty request whose key it takes."""


async def probe_all(connections: Iterable[Connection], transport: TransportKind) -> list[Finding]:
    """Tries connections, all at a time; none of the simulator's is tried."""
    tried = [connection for connection in connections if not connection.simulated]
    gateway = Gateway(Connections({connection.id: connection for connection in tried}), transport)
    try:
        return await asyncio.gather(*(_probe(gateway, connection) for connection in tried))
    finally:
        await gateway.close()


async def _probe(gateway: Gateway, connection: Connection) -> Finding:
    name = connection.id
    taken = Finding(name, True, "reachable" if connection.api_key is None else "key accepted")
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            await gateway.probe(name, "")
    except TimeoutError:
        return Finding(name, False, f"no answer from {connection.base_url} within {PROBE_SECONDS:g} s")
    except ModelCallError as error:
        if error.status in TAKEN_STATUSES and error.kind is not FailureKind.JOB:
            return taken
        why = cause(error.code, error.status, name, str(error))
        if error.status == HTTPStatus.NOT_FOUND:
            why = f"no API at {connection.base_url}"
        return Finding(name, False, f"{why}. {remedy(error.code, error.status, name)}")
    return taken
