"""The API on the loop that is watched."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2

from app.db.migrate import upgrade
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
async def served() -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    """A client of the API, which runs on this very loop, and the URL of its database."""
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
            yield client, database
