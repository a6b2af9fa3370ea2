"""Which transport a connection gets."""

from typing import Literal, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies

from app.llm.connections import Connection
from app.llm.transports.lean import LeanTransport
from app.llm.transports.reply import Reply
from app.llm.transports.sdk import MakeClient, SdkTransport

TransportKind = Literal["lean", "sdk"]


class Transport(Protocol):
    """Posts JSON to one path of one connection."""

    async def post(self, body: dict[str, object], request_id: str, deadline_seconds: float) -> Reply:
        """The good reply to one HTTP call within the deadline.

        Raises:
            ModelCallError: If there was none.
        """
        ...

    async def close(self) -> None:
        """Closes all connections."""
        ...


def open_transport(
    kind: TransportKind, connection: Connection, make_client: MakeClient, path: str
) -> Transport:
    """The transport asked for; the SDK's where a proxy may stand between, which only that one speaks to.

    Which hosts the environment exempts from its proxies is left to the SDK as well.
    """
    chosen = SdkTransport if kind == "sdk" or _has_proxy(connection.base_url) else LeanTransport
    return chosen(make_client, path, connection.api_key)


def _has_proxy(url: str) -> bool:
    return not getproxies().keys().isdisjoint({urlsplit(url).scheme, "all"})
