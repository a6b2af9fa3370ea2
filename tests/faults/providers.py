"""Many scripted providers on one real server, each below a path of its own."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Self

from tests.integration.llm.stub_provider import Answer


class Providers(ThreadingHTTPServer, ABC):
    """Answers calls to ``/NAME/v1/…`` as the provider of that name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self._lock = Lock()

    @abstractmethod
    def answer(self, connection: str, body: bytes) -> Answer:
        """Return the answer to a call."""

    def connections(self, names: Mapping[str, str], **more: object) -> dict[str, object]:
        """Return the connections to the providers as the operator's file has them."""
        url = f"http://127.0.0.1:{self.server_port}"
        common = {"kind": "openai", "api_key_env": "PROVIDER_KEY", **more}
        return {name: {**common, "base_url": f"{url}/{name}/v1"} for name in names}

    @contextmanager
    def serving(self) -> Iterator[Self]:
        """Serve until the block ends."""
        with self:
            Thread(target=self.serve_forever, daemon=True).start()
            yield self
            self.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: Providers
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body == b"{}":  # a probe
            self.send_error(400)
            return
        answer = self.server.answer(self.path.split("/")[1], body)
        self.wfile.write(answer.wire()[: answer.cut_after])
        if answer.cut_after is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Writes no log."""
