"""Kombu's transport on Redis, which takes a connection that was closed for one that was lost.

When Redis restarts, Celery closes its connection, and threads that end a task meanwhile acknowledge it on a channel of the closed
one. Kombu looks there for the server's address and finds nothing, which is an ``AttributeError`` that nobody expects: it ended the
worker. As a lost connection it is logged, and the message comes again.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis


class Channel(redis.Channel):
    """A channel that may outlive its connection."""

    def _connparams(self, asynchronous: bool = False) -> Any:
        if getattr(self.connection, "client", None) is None:
            raise ConnectionError("the channel's connection was closed")
        return super()._connparams(asynchronous=asynchronous)  # type: ignore[no-untyped-call]  # Kombu has no types


class Transport(redis.Transport):
    """Kombu's, with that channel."""

    Channel = Channel


def use() -> None:
    """Has URLs of Redis lead to this transport."""
    for scheme in ("redis", "rediss", "redis+socket"):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{Transport.__name__}"
