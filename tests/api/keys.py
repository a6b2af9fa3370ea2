"""A service that has API keys, and the keys."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.db.engine import connect
from app.domain.keys.api_key import Scope
from app.domain.keys.contract import ApiKey, ApiKeyIn, SpendingIn
from app.services.keys.api_keys import KeyDependencies, create_key, revoke_key
from embedded.valkey import EmbeddedValkey
from tests.api.service import Json, Service, serving
from tests.conftest import scratch_directory
from tests.databases import Databases

PEPPER = "a pepper for tests, of more than 32 bytes"


@dataclass(frozen=True, slots=True)
class KeyMaker:
    """Makes keys as `assay keys` does, straight on the database."""

    database_url: str

    def make(self, *scopes: Scope, tenant: str = "default", **limits: Any) -> Json:
        """A new key with its id."""
        usd = limits.pop("usd", None)
        spending = None if usd is None else SpendingIn(usd_limit=usd)
        wanted = ApiKeyIn(name="a key", scopes=list(scopes), spending=spending, **limits)
        return self._done(lambda deps: create_key(deps, tenant, wanted))

    def revoke(self, key: Json) -> None:
        self._done(lambda deps: revoke_key(deps.engine, "default", key["id"]))

    def _done(self, deed: Any) -> Json:
        async def do() -> Json:
            engine = connect(self.database_url, pool_size=1)
            try:
                done: ApiKey = await deed(KeyDependencies(engine, PEPPER.encode()))
                return done.model_dump(mode="json")
            finally:
                await engine.dispose()

        with ThreadPoolExecutor(1) as elsewhere:  # where no other event loop is
            return elsewhere.submit(asyncio.run, do()).result()


@contextmanager
def guarded(
    directory: Path, database_url: str, redis_url: str, *, port: int = 0, **environment: str
) -> Iterator[Service]:
    """An API that can check keys."""
    with serving(
        directory, database_url, redis_url, port=port, ASSAY_KEY_PEPPER=PEPPER, **environment
    ) as service:
        yield service


@contextmanager
def guarded_alone(databases: Databases, template: str, name: str, **environment: str) -> Iterator[Service]:
    """The same with a database and a Valkey of its own."""
    with (
        databases.new(name, template=template) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        guarded(directory, url, valkey.url(), port=0, **environment) as service,
    ):
        yield service


def bearer(key: Json | str) -> dict[str, str]:
    """The header that shows a key."""
    shown = key if isinstance(key, str) else key["key"]
    return {"Authorization": f"Bearer {shown}"}
