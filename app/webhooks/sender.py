"""Sends a message to a receiver: one attempt, to an address that was checked, without following it anywhere."""

import asyncio
import socket
import ssl
from collections.abc import Mapping

import httpx2

from app.guard.targets import Guard, TargetRefusedError
from app.guard.transport import PinnedTransport
from app.ports import WebhookError

ATTEMPT_SECONDS = 15.0
"""For a whole attempt, from the look-up of the name to the status of the answer."""
CONNECT_SECONDS = 5.0


class HttpWebhookSender:
    """Sends messages over HTTP.

    Args:
        guard: Says where they may go.
        seconds: For a whole attempt.
    """

    def __init__(self, guard: Guard, seconds: float = ATTEMPT_SECONDS) -> None:
        self._seconds = seconds
        self._http = httpx2.AsyncClient(
            transport=PinnedTransport(guard, httpx2.Limits(max_keepalive_connections=0)),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
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
            async with (
                asyncio.timeout(self._seconds),
                self._http.stream("POST", url, content=body.encode(), headers=dict(headers)) as response,
            ):
                return response.status_code
        except TargetRefusedError as error:
            raise WebhookError(f"refused: {error}") from error
        except (TimeoutError, httpx2.TimeoutException) as error:
            raise WebhookError(f"no answer within {self._seconds:g} s") from error
        except (httpx2.HTTPError, OSError) as error:
            raise WebhookError(_reason(error)) from error
        except (
            UnicodeError,
            httpx2.InvalidURL,
        ) as error:  # the first from the look-up, for what can be no host's name
            raise WebhookError("its host can't be looked up: it is no name") from error


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
