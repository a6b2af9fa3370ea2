"""Which transport a connection gets."""

from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies

from app.llm.connections.connections import Connection
from app.llm.replies.transport_reply import Reply
from app.llm.transports import TransportKind
from app.llm.transports.body import Body, EmptyBody
from app.llm.transports.lean import LeanTransport
from app.llm.transports.sdk import Faults, MakeClient, SdkTransport


class Transport(Protocol):
    """Posts JSON to one path of one connection."""

    async def post(self, body: Body | EmptyBody, request_id: str, deadline_seconds: float) -> Reply:
        """The good reply to one HTTP call within the deadline.

        Raises:
            ModelCallError: If there was none.
        """
        ...

    async def close(self) -> None:
        """Closes all connections."""
        ...


def open_transport(
    kind: TransportKind, connection: Connection, make_client: MakeClient, path: str, faults: Faults
) -> Transport:
    """The transport asked for; the SDK's where only that one knows how requests get there.

    That is where the environment names a proxy (which hosts it exempts is left to the SDK as well), and where the URL
    has escapes, which the SDKs' libraries rewrite on the way. A connection under guard never uses a proxy: that would
    look the name up by itself.
    """
    url, guard = connection.base_url, connection.guard
    if kind == "sdk" or (guard is None and _has_proxy(url)) or "%" in url:
        return SdkTransport(make_client, path, connection.api_key, faults, guard)
    return LeanTransport(make_client, path, connection.api_key, guard, connection.id)


def _has_proxy(url: str) -> bool:
    return not getproxies().keys().isdisjoint({urlsplit(url).scheme, "all"})
