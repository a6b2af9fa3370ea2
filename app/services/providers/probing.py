"""Tries connections, at no cost: whether each server answers and takes its key."""

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import NamedTuple

from app.domain.providers.failure import cause, remedy
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from app.ports import FailureKind, ModelCallError
from app.services.providers.connection_book import name_in

PROBE_SECONDS = 5.0
TAKEN_STATUSES = frozenset({400, 409, 413, 422, 429})
"""How a server refuses an empty request whose key it takes."""


class Probed(NamedTuple):
    """What was found of a connection.

    Attributes:
        name: How jobs name it.
        good: Whether its server answers and takes its key.
        words: That in words, with what to do.
    """

    name: str
    good: bool
    words: str


async def probe_all(connections: Iterable[Connection], transport: TransportKind) -> list[Probed]:
    """Tries connections, all at a time; none of the simulator's is tried."""
    tried = [connection for connection in connections if not connection.simulated]
    gateway = Gateway(Connections({connection.id: connection for connection in tried}), transport)
    try:
        return await asyncio.gather(*(_probe(gateway, connection) for connection in tried))
    finally:
        await gateway.close()


async def _probe(gateway: Gateway, connection: Connection) -> Probed:
    name, kept = name_in(connection.id), connection.id
    taken = Probed(name, True, "reachable" if connection.api_key is None else "key accepted")
    try:
        await gateway.prepare(kept, connection.tenant or "")  # loads an SDK, which is not the server's time
        async with asyncio.timeout(PROBE_SECONDS):
            await gateway.probe(kept, connection.tenant or "")
    except TimeoutError:
        return Probed(name, False, f"no answer from {connection.base_url} within {PROBE_SECONDS:g} s")
    except ModelCallError as error:
        if error.status in TAKEN_STATUSES and error.kind is not FailureKind.JOB:
            return taken
        why = cause(error.code, error.status, kept, str(error))
        if error.status == HTTPStatus.NOT_FOUND:
            why = f"no API at {connection.base_url}"
        return Probed(name, False, f"{why}. {remedy(error.code, error.status, kept)}")
    return taken
