"""Where Redis is and how it is reached: one definition for the rate limiter, the metrics, the API and Celery."""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from pathlib import Path

    from redis.asyncio import Redis
    from redis.asyncio.connection import AbstractConnection

CONNECT_SECONDS = 3.0

_TLS = "rediss://"
_VERIFIED: Mapping[str, object] = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}

_CLOSED = "it closed the connection: does it expect TLS (rediss://) or a client certificate (ASSAY_REDIS_CERT_FILE)?"

_REASONS = (
    ("certificate verify failed", "its TLS certificate is not trusted; see ASSAY_REDIS_CA_FILE"),
    ("certificate required", "it requires a client certificate; see ASSAY_REDIS_CERT_FILE"),
    ("unknown ca", "it does not trust our client certificate; see ASSAY_REDIS_CERT_FILE"),
    ("wrong version number", "it does not speak TLS; begin REDIS_URL with redis://"),
    ("connection closed by server", _CLOSED),
    ("unexpected_eof", _CLOSED),
    ("eof occurred", _CLOSED),
    ("broken pipe", _CLOSED),
    ("connection reset", _CLOSED),
    ("authentication required", "it requires a password"),
    ("wrongpass", "it refused the password"),
    ("invalid username-password", "it refused the password"),
    ("maxmemory", "its memory is full (maxmemory)"),
    ("refused", "connection refused"),
    ("connect call failed", "connection refused"),
    ("name or service not known", "its host name is unknown"),
    ("name resolution", "its host name is unknown"),
    ("no such file", "there is no such socket"),
    ("loading", "it is still loading its data"),
    ("timeout", "no answer in time"),
)
"""What errors of the driver and of OpenSSL say in lower case, and what an operator reads."""


@dataclass(frozen=True, slots=True)
class RedisServer:
    """A Redis or Valkey server.

    Over TLS its certificate and its name are verified, unless the URL itself says otherwise (``ssl_cert_reqs``, ``ssl_check_hostname``).

    Attributes:
        url: ``redis://``, ``rediss://`` or ``unix://``, without parameters about TLS.
        tls: Those parameters, as redis-py and Kombu both name them; empty without TLS.
    """

    url: str = field(repr=False)
    tls: dict[str, object] = field(default_factory=dict)

    def client(self, seconds: float) -> "Redis":
        """A client for one event loop, whose requests end where they are cancelled or their time is up.

        Args:
            seconds: How long it waits for an answer.
        """
        from redis.asyncio import Redis  # noqa: PLC0415 - the command line reads settings and needs no client

        options: dict[str, Any] = {"socket_timeout": seconds, "socket_connect_timeout": CONNECT_SECONDS}
        client = Redis.from_url(self.url, **options | self.tls)
        client.connection_pool.connection_class = _cancellable(client.connection_pool.connection_class)
        return client

    async def why_unreachable(self) -> str | None:
        """Return why the server does not answer, as :func:`reason` words it, or ``None``."""
        from redis.exceptions import RedisError  # noqa: PLC0415 - see above

        client = self.client(CONNECT_SECONDS)
        try:
            await client.execute_command("PING")  # type: ignore[no-untyped-call] # redis-py leaves it untyped
        except (RedisError, OSError) as error:
            return reason(error)
        finally:
            await client.aclose()
        return None


def _cancellable(kind: "type[AbstractConnection]") -> "type[AbstractConnection]":
    """A kind of connection that loses no cancellation.

    redis-py writes by :func:`asyncio.wait_for`, which on Python 3.11 returns in place of a cancellation that meets the write's end: a
    task goes on that was told to end, and a request waits on whose time is up.
    """

    class Cancellable(kind):  # type: ignore[misc, valid-type] # a base that is known at run time only
        async def send_packed_command(
            self, command: bytes | str | Iterable[bytes], check_health: bool = True
        ) -> None:
            before = _cancellations()
            await super().send_packed_command(command, check_health)
            if _cancellations() > before:
                await self.disconnect(nowait=True)  # nobody will read the answer
                raise asyncio.CancelledError

    return Cancellable


def _cancellations() -> int:
    """How often the current task was cancelled and has not taken that back."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def redis_server(
    url: str, *, ca: "Path | None" = None, cert: "Path | None" = None, key: "Path | None" = None
) -> RedisServer:
    """A server by its URL and the files of its TLS.

    Args:
        url: What ``REDIS_URL`` says.
        ca: Certificates to trust besides the system's.
        cert: Our certificate, where the server asks for one.
        key: Its private key, if that is not in the same file.

    Raises:
        ValueError: The files can't be used, or the URL is not one of TLS; the message names the setting.
    """
    parts = urlsplit(url)
    query = parse_qsl(parts.query, keep_blank_values=True)
    ours = urlunsplit(
        parts._replace(query=urlencode([each for each in query if not each[0].startswith("ssl_")]))
    )
    given: dict[str, object] = {name: value for name, value in query if name.startswith("ssl_")}
    given |= {name: str(file) for name, file in _files(ca, cert, key).items() if file is not None}
    if not url.startswith(_TLS):
        if given:
            raise ValueError("files and parameters for TLS need a REDIS_URL that begins with rediss://")
        return RedisServer(url)
    if "ssl_check_hostname" in given:
        given["ssl_check_hostname"] = str(given["ssl_check_hostname"]).lower() not in {"false", "0", "no"}
    if str(given.get("ssl_cert_reqs", "")).startswith("CERT_"):  # Kombu's spelling
        given["ssl_cert_reqs"] = str(given["ssl_cert_reqs"]).removeprefix("CERT_").lower()
    if given.get("ssl_cert_reqs") == "none":
        given["ssl_check_hostname"] = False
    _try_files(given)
    return RedisServer(ours, {**_VERIFIED, **given})


def _files(ca: "Path | None", cert: "Path | None", key: "Path | None") -> "dict[str, Path | None]":
    return {"ssl_ca_certs": ca, "ssl_certfile": cert, "ssl_keyfile": key or cert}


def _try_files(tls: Mapping[str, object]) -> None:
    """Reads the files, so that a process with unusable ones does not start.

    Raises:
        ValueError: One can't be read, or is no PEM file.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ca, cert, key = (tls.get(name) for name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile"))
    try:
        if ca is not None:
            context.load_verify_locations(str(ca))
    except OSError as error:
        raise ValueError(f"ASSAY_REDIS_CA_FILE: {_of_file(ca, error)}") from error
    try:
        if cert is not None:
            context.load_cert_chain(str(cert), None if key is None else str(key))
    except OSError as error:
        raise ValueError(f"ASSAY_REDIS_CERT_FILE, ASSAY_REDIS_KEY_FILE: {_of_file(cert, error)}") from error
    if cert is None and key is not None:
        raise ValueError("ASSAY_REDIS_KEY_FILE needs ASSAY_REDIS_CERT_FILE")


def _of_file(file: object, error: OSError) -> str:
    """What is wrong with a file: OpenSSL's own words say nothing to who has mistaken one file for another."""
    why = "is not a certificate or key in PEM form, or the two do not match"
    return f"{file} {why}" if isinstance(error, ssl.SSLError) else f"{file}: {error.strerror}"


def reason(error: BaseException) -> str:
    """Why Redis can't be used, in words that hold no host, no name and no secret: `/readyz` shows them to everybody."""
    said = f"{type(error).__name__} {error}".lower()
    return next((shown for found, shown in _REASONS if found in said), "it can't be reached")
