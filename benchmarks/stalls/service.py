"""The API on the loop that is watched."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
from starlette.types import ASGIApp

from app.db.migration.migrate import upgrade
from app.main import create_app
from app.settings import Settings
from embedded.postgres import EmbeddedPostgres
from embedded.valkey import EmbeddedValkey

SECONDS_OF_IMPORTS = 6.0
"""The API imports what few requests need in the background, which is none of their doing."""
SMALL = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "responses": [{"persona": "E-low", "task": "essay", "text": "No."}],
}


@dataclass(frozen=True)
class Served:
    """A running API.

    Attributes:
        client: Asks it; keeps a whole answer.
        app: The application.
        database: The URL of its database.
    """

    client: httpx2.AsyncClient
    app: ASGIApp
    database: str

    async def read(self, path: str) -> None:
        """Reads an answer and keeps nothing of it.

        Raises:
            RuntimeError: If it is an error.
        """
        path, _, query = path.partition("?")
        found: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            await asyncio.Event().wait()
            return {}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start" or found[0]["status"] >= HTTPStatus.BAD_REQUEST:
                found.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"127.0.0.1")],
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 1),
        }
        await self.app(scope, receive, send)
        if len(found) != 1:
            raise RuntimeError(f"{path}: {found}")


@contextlib.contextmanager
def _databases() -> Iterator[tuple[str, str]]:
    """The URLs of a migrated Postgres and of a Valkey."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name:
        directory = Path(name)
        directory.chmod(0o711)  # passable: Postgres may have to run as another account
        with (
            EmbeddedPostgres(directory / "postgres") as server,
            EmbeddedValkey(directory / "valkey") as valkey,
        ):
            upgrade(server.url())
            yield server.url(), valkey.url()


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[Served]:
    """The API, running on this very loop."""
    with _databases() as (database, redis):
        app = create_app(
            Settings(
                database_url=database,
                redis_url=redis,
                simulator_url="http://127.0.0.1:9",
                log_level="ERROR",
            )
        )
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(
                transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1", timeout=600
            ) as client,
        ):
            await asyncio.sleep(SECONDS_OF_IMPORTS)
            for path in ("/v1/jobs", "/v1/jobs/plan"):  # the first of all requests imports, too
                await client.post(path, json=SMALL)
                await client.post(path, json={})
            yield Served(client, app, database)
