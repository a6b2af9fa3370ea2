"""Sends a message to a receiver: one attempt, to an address that was checked, without following it anywhere."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Collection, Mapping

import httpx2

from app.ports import WebhookError
from app.webhooks.targets import TargetRefusedError, is_allowed, is_public, parse_target, port_of

ATTEMPT_SECONDS = 15.0
"""For a whole attempt, from the look-up of the name to the status of the answer."""
CONNECT_SECONDS = 5.0
MOST_ADDRESSES = 3
"""Addresses of a name that are tried in one attempt."""


class HttpWebhookSender:
    """Sends messages over HTTP; no environment's proxy stands between, as it would look names up by itself.

    Args:
        allowed: The operator's hosts; see :func:`app.webhooks.targets.parse_target`.
        seconds: For a whole attempt.
    """

    def __init__(self, allowed: Collection[str], seconds: float = ATTEMPT_SECONDS) -> None:
        self._allowed = frozenset(allowed)
        self._seconds = seconds
        self._http = httpx2.AsyncClient(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
            # A connection belongs to an address; another name at the same one has another certificate.
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    async def close(self) -> None:
        """Closes what is open."""
        await self._http.aclose()

    async def send(self, url: str, headers: Mapping[str, str], body: str) -> int:
        """Posts a message and returns the status of the answer, whose body is not read.

        Raises:
            WebhookError: If there was no answer.
        """
        try:
            async with asyncio.timeout(self._seconds):
                return await self._send(url, headers, body)
        except TargetRefusedError as error:
            raise WebhookError(f"refused: {error}") from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise WebhookError(f"no answer within {self._seconds:g} s") from error
        except (httpx2.HTTPError, OSError) as error:
            raise WebhookError(_reason(error)) from error
        except UnicodeError as error:  # from the look-up, for what can be no host's name
            raise WebhookError("its host can't be looked up: it is no name") from error

    async def _send(self, url: str, headers: Mapping[str, str], body: str) -> int:
        target = parse_target(url, self._allowed)
        addresses = await self._addresses(target)
        for address in addresses[:-1]:
            try:
                return await self._post(target, address, headers, body)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._post(target, addresses[-1], headers, body)

    async def _addresses(self, target: httpx2.URL) -> list[str]:
        """The addresses of the target's host to which messages may go.

        Raises:
            TargetRefusedError: If there is none.
        """
        found = await asyncio.get_running_loop().getaddrinfo(
            target.host, port_of(target), type=socket.SOCK_STREAM
        )
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not is_allowed(target, self._allowed):
            addresses = [each for each in addresses if is_public(ipaddress.ip_address(each))]
        if not addresses:
            raise TargetRefusedError("its name stands for private addresses only")
        return addresses[:MOST_ADDRESSES]

    async def _post(self, target: httpx2.URL, address: str, headers: Mapping[str, str], body: str) -> int:
        """Posts to this very address, so that nobody can have the name stand for another one meanwhile."""
        host = target.netloc.decode("ascii")
        async with self._http.stream(
            "POST",
            target.copy_with(host=address),
            content=body.encode(),
            headers={**headers, "Host": host},
            extensions={"sni_hostname": target.host},
        ) as response:
            return response.status_code


def _reason(error: BaseException) -> str:
    """What kind of error it was, for people."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    for kind, reason in (
        (socket.gaierror, "its name is not known"),
        (ssl.SSLError, "no trustworthy TLS connection"),
        (httpx2.ConnectError, "can't connect"),
    ):
        if any(isinstance(each, kind) for each in causes):
            return reason
    return "the connection broke off"
