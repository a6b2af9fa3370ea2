"""The fixture of an engine on the test's own database."""

from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    made = connect(database_url, pool_size=12)
    yield made
    await made.dispose()
