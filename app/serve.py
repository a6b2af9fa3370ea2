"""Serves the API: ``python -m app.serve`` takes uvicorn's own options.

What differs is how long uvicorn waits for a request's head, and how much of one it keeps: by itself it has no bound for either.
Also, the rest of a body that was answered early is read and dropped before the connection is closed: closed with bytes
unread, it is reset, and a client that first sends all of its body never sees the answer.
"""

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import Any

from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.main import main
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.bootstrap import share_heaps, told_start

FOLDERS = str(Path(__file__).parents[1])
"""Where uvicorn looks for modules before anywhere else; by itself it takes the working directory, where somebody's own may lie."""
HEAD_SECONDS = 10.0
"""After so long a connection is closed on which no whole head has come: its first, or another one after an answer."""
HEAD_BYTES = 64 * 1024
"""Most of an unfinished head that is kept; what a whole one may have is decided in ``app.api.http.limits``."""

UNREAD_SECONDS = 60.0
"""So long a closed connection waits for a client that does not read."""
REST_SECONDS, REST_BYTES = 60.0, 256 * 1024 * 1024
"""So long, and so much, the rest of a body is read whose request is answered already."""


class _ClosedAfterBody:
    """What an answer is written to: closing it after the answer waits until the rest of the body was read.

    Args:
        protocol: Whose transport it is.
    """

    def __init__(self, protocol: "BoundedHttp") -> None:
        self._protocol = protocol
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing

    def close(self) -> None:
        """Closes the transport, at once or after the body."""
        if self._protocol.awaits_rest():
            self._protocol.closes_after_body = True
        else:
            self._protocol.close()


class BoundedHttp(HttpToolsProtocol):
    """HTTP/1.1 whose heads have to come soon and to end somewhere, and so has what is left of a body after its answer.

    Attributes:
        closes_after_body: Whether no further request is taken: the answer said so.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._in_head = True
        self._head_bytes = 0
        self._in_body = False
        self._rest_bytes = 0
        self.closes_after_body = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begins to wait for a head."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts what comes of a head until it is whole."""
        was_in_head = self._in_head
        if self.awaits_rest():
            self._rest_bytes += len(data)
            if self._rest_bytes > REST_BYTES:
                self.close()
                return
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            # Of what a head begins in, the most may be the body before it.
            self._head_bytes += len(data) if was_in_head else 1
            if self._head_bytes > HEAD_BYTES:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_message_begin(self) -> None:
        """Waits for the rest of a head, once the request before it is answered."""
        super().on_message_begin()
        self._in_head = True
        if self._is_idle():
            self._wait()

    def on_headers_complete(self) -> None:
        """Waits no longer: a body has limits of its own, where it is read."""
        self._in_head = False
        self._head_bytes = self._rest_bytes = 0
        self._in_body = True
        self._stop_waiting()
        super().on_headers_complete()
        if self.cycle is not None:
            self.cycle.transport = _ClosedAfterBody(self)  # type: ignore[assignment]  # it has what a cycle calls

    def on_message_complete(self) -> None:
        """Closes the connection, or waits for the next head, if the request was answered before."""
        rest_ended = self.awaits_rest()
        self._in_body = False
        super().on_message_complete()
        if self.closes_after_body:
            self.close()
        elif rest_ended:
            self._wait()

    def on_response_complete(self) -> None:
        """Waits for the next head, or first for the rest of a body that nobody reads any more."""
        super().on_response_complete()
        if self._is_idle():
            self._wait()

    def awaits_rest(self) -> bool:
        """Whether a request is answered whose body has not ended."""
        return self._in_body and self._is_idle()

    def _is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is None or cycle.response_complete

    def _wait(self) -> None:
        self._stop_waiting()
        seconds = REST_SECONDS if self._in_body else HEAD_SECONDS
        self._timer = self.loop.call_later(seconds, self._refuse, HTTPStatus.REQUEST_TIMEOUT)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: HTTPStatus) -> None:
        """Ends the connection, with a word for those who have begun to ask."""
        if self.transport.is_closing():
            return
        if self._head_bytes:
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.close()

    def close(self) -> None:
        """Closes the connection, and ends it where the client does not take the rest of an answer."""
        self._stop_waiting()
        self.transport.close()
        self._timer = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)


if __name__ == "__main__":
    HTTP_PROTOCOLS["auto"] = "app.serve:BoundedHttp"
    share_heaps()
    with told_start():
        main(default_map={"app_dir": FOLDERS})
