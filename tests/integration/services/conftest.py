from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.services.execution import first_calls, leases
from tests.integration.engine import engine
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

__all__ = ["engine"]


@pytest.fixture
def calls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of a model does not go alone."""
    monkeypatch.setattr(first_calls, "LEAD_SECONDS", 0.0)


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers look every moment whether their job still is to be worked on."""
    monkeypatch.setattr(leases, "JOB_CHECK_SECONDS", 0.02)


@pytest.fixture
def provider() -> Provider:
    """Who answers; modules have their own."""
    return Provider()


@pytest.fixture
async def worker(engine: AsyncEngine, provider: Provider) -> AsyncIterator[Worker]:
    """A worker that calls the provider."""
    made = Worker(engine, provider)
    async with made.deps.writer.running(), made.deps.leases.running():
        yield made
