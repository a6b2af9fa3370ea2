"""What tests of uploads share."""

from collections.abc import AsyncIterator

import pytest_asyncio

from app.readers.pool import ReaderPool


@pytest_asyncio.fixture
async def readers() -> AsyncIterator[ReaderPool]:
    pool = ReaderPool("app.services.file_readers:prepare")
    yield pool
    await pool.close()
