"""Uploads beside others who delete them."""

import asyncio

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.uploads import uploads
from app.db.uploads.tables import UploadRow
from app.domain.jobs.stored_texts import UploadedTexts
from app.instruments.rules import RULES
from app.readers.pool import ReaderPool
from app.services.uploads.uploads import UploadDependencies, add_part, create_upload, uploaded_texts
from tests.integration.jobs import TENANT

LINE = b'{"persona": "E-low", "task": "essay", "text": "I stay at home."}\n'


async def ready_upload(engine: AsyncEngine) -> str:
    """The id of an upload with one text, which jobs can name."""
    readers = ReaderPool("")  # such a short file needs none
    deps = UploadDependencies(engine, readers, RULES, most_bytes=1000, tenant_bytes=1000, days=7)
    upload = await create_upload(deps, TENANT, len(LINE), {})
    assert (await add_part(deps, TENANT, upload.id, 0, LINE)).status == "ready"
    return upload.id


async def test_an_upload_that_is_being_deleted_is_gone_for_a_job_not_without_texts(
    engine: AsyncEngine,
) -> None:
    upload = await ready_upload(engine)
    found = await uploaded_texts(engine, TENANT, upload, ())
    assert isinstance(found, UploadedTexts)
    assert len(found.texts) == 1
    async with engine.begin() as deleting:
        assert await uploads.remove(deleting, TENANT, upload)
        reading = asyncio.create_task(uploaded_texts(engine, TENANT, upload, ()))
        done, _ = await asyncio.wait({reading}, timeout=0.5)
        assert not done  # it neither reads what is about to go nor counts on it
    assert await reading == "there is no such upload"


async def test_an_upload_with_too_many_texts_is_refused_before_one_of_them_is_read(
    engine: AsyncEngine,
) -> None:
    upload = await ready_upload(engine)
    async with engine.begin() as connection:  # 2 GiB of short lines; there is one
        await connection.execute(update(UploadRow).values(records=43_000_000))
    found = await uploaded_texts(engine, TENANT, upload, ())
    assert found == "43,000,000 texts; at most 500,000: upload them as several files"


async def test_an_upload_whose_records_are_being_replaced_has_the_old_ones_for_a_job(
    engine: AsyncEngine,
) -> None:
    upload = await ready_upload(engine)

    async def another() -> bool:
        async with engine.begin() as connection:
            return await uploads.keep(connection, TENANT, upload)

    async with engine.begin() as replacing:
        assert await uploads.keep(replacing, TENANT, upload)
        await uploads.drop_records(replacing, TENANT, upload)
        found = await asyncio.wait_for(uploaded_texts(engine, TENANT, upload, ()), 30)
        assert isinstance(found, UploadedTexts)
        assert len(found.texts) == 1
        waiting = asyncio.create_task(another())
        assert not (await asyncio.wait({waiting}, timeout=0.5))[0], "one replaces them at a time"
    assert await waiting
