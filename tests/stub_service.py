"""A service on a real socket that gives the answers it was told to, and remembers what it was asked."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One answer; ``None`` for the status breaks the connection off instead."""

    body: Any = None
    status: int | None = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class StubService:
    """What each method and path answers, in turn; the last answer stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[Asked] = []
        self.url = ""

    def on(self, request: str, *answers: Answer) -> None:
        """Sets the answers to a request such as ``GET /v1/jobs``."""
        self.answers[request] = list(answers)

    def next_answer(self, request: str) -> Answer:
        known = self.answers.get(request, [Answer({"detail": f"{request} has no answer"}, 404)])
        return known.pop(0) if len(known) > 1 else known[0]


@contextmanager
def stub_service() -> Iterator[StubService]:
    stub = StubService()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            is_json = headers.get("content-type") == "application/json"
            stub.asked.append(Asked(self.command, self.path, headers, json.loads(body) if is_json else body))
            answer = stub.next_answer(f"{self.command} {self.path}")
            if answer.status is None:
                return
            content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"" if answer.status == 304 else content)

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - http.server's names

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield stub
        finally:
            server.shutdown()
            thread.join()
