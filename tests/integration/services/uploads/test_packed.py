"""Who waits for whom when packed uploads are read."""

import asyncio
import gzip

from sqlalchemy.ext.asyncio import AsyncEngine

from app.instruments.rules import RULES
from app.readers.pool import ReaderPool
from app.services.uploads.readings import AT_ONCE, Readings
from app.services.uploads.uploads import UploadDependencies, add_part, create_upload, find_upload

LINE = b'{"persona": "E-low", "task": "essay", "text": "I stay at home. I read."}\n'


async def test_a_tenants_long_files_do_not_keep_another_waiting(
    engine: AsyncEngine, readers: ReaderPool
) -> None:
    deps = UploadDependencies(engine, readers, RULES, most_bytes=10**9, tenant_bytes=10**10, days=7)

    async def send(tenant: str, data: bytes) -> str:
        upload = await create_upload(deps, tenant, len(data), {})
        await add_part(deps, tenant, upload.id, 0, data)
        return upload.id

    long = gzip.compress(LINE * 400_000)
    try:
        async with asyncio.TaskGroup() as group:
            sent = [group.create_task(send("first", long)) for _ in range(AT_ONCE)]
        second = await find_upload(deps, "second", await send("second", gzip.compress(LINE)))
        first = [await find_upload(deps, "first", task.result()) for task in sent]
    finally:
        await deps.packed.close()
    assert second.status == "ready"
    assert {each.status for each in first} == {"reading"}


async def test_long_files_of_two_tenants_let_a_third_ones_pass_and_are_read_to_their_ends(
    engine: AsyncEngine, readers: ReaderPool
) -> None:
    turns = Readings[None](turn_seconds=0)
    deps = UploadDependencies(
        engine, readers, RULES, most_bytes=10**9, tenant_bytes=10**10, days=7, packed=turns
    )
    lines = 45_000
    long = gzip.compress(LINE * lines)
    begun = {f"long {n}": await create_upload(deps, f"long {n}", len(long), {}) for n in range(AT_ONCE)}
    data = gzip.compress(LINE)
    short = await create_upload(deps, "short", len(data), {})
    try:
        async with asyncio.TaskGroup() as group:
            for tenant, upload in begun.items():
                group.create_task(add_part(deps, tenant, upload.id, 0, long))
            await asyncio.sleep(0.5)
            await add_part(deps, "short", short.id, 0, data)
            assert (await find_upload(deps, "short", short.id, wait=60)).status == "ready"
            others = [await find_upload(deps, tenant, upload.id) for tenant, upload in begun.items()]
            assert {each.status for each in others} == {"reading"}
        for tenant, upload in begun.items():
            read = await find_upload(deps, tenant, upload.id, wait=60)
            assert (read.status, read.records) == ("ready", lines)
    finally:
        await turns.close()
