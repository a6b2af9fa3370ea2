"""Makes records of an upload that is another tool's file."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.uploads import uploads
from app.db.uploads.tables import UploadRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.uploads.formats import TOOL_FILE
from app.readers.pool import twice
from app.services.identifiers import id_form
from app.services.uploads.readings import GiveWay
from app.services.uploads.stored_file import StoredFile
from app.services.uploads.upload_reader import PREVIEW
from app.services.uploads.uploads import UPLOAD, UploadDependencies

Results = Callable[[StoredFile, str], AsyncGenerator[bytes, bytes | None]]
"""Reads a file of a name."""


async def make_records(
    deps: UploadDependencies, tenant: str, upload_id: str, results: Results, _give_way: GiveWay
) -> bytes:
    """Make the texts of another tool's file the upload's records, in place of those of earlier calls; return the preview.

    All of them or none: in one transaction, so it gives no way.

    Raises:
        InvalidJobError: If there is no such file, part of it is missing, or it can't be read.
    """
    row = await _file(deps.engine, tenant, upload_id)
    try:
        return await twice(partial(_make, deps, row, results))
    except InvalidJobError as error:
        if error.errors[0].pointer:
            raise
        raise _wrong(error.errors[0].message) from error


async def _make(deps: UploadDependencies, row: UploadRow, results: Results) -> bytes:
    tenant, upload_id, count, preview = row.tenant, row.id, 0, b""
    async with deps.engine.begin() as connection:
        if not await uploads.keep(connection, tenant, upload_id):
            raise _wrong("was deleted meanwhile")
        await uploads.drop_records(connection, tenant, upload_id)
        async with aclosing(
            results(StoredFile(deps.engine, tenant, upload_id, row.size), row.name or "")
        ) as found:
            async for each in found:
                if each.startswith(PREVIEW):
                    preview = each[1:]
                    continue
                records = await asyncio.to_thread(json.loads, each[1:])
                await uploads.add_records(connection, tenant, upload_id, count, records)
                count += len(records)
        written = {
            "records": count,
            "rules": dict(deps.rules.current),
            "expires_at": deps.expires_at(),
        }
        await uploads.advance(connection, tenant, upload_id, row.size, written)
    return preview


async def _file(engine: AsyncEngine, tenant: str, upload_id: str) -> UploadRow:
    row = None
    if re.fullmatch(id_form(UPLOAD), upload_id) is not None:
        async with engine.connect() as connection:
            row = await uploads.find(connection, tenant, upload_id)
    if row is None:
        raise _wrong("there is no such upload")
    if row.format != TOOL_FILE:
        raise _wrong(
            "has records already; begin an upload with the metadata `purpose` `import` for another tool's file"
        )
    if row.received < row.size:
        raise _wrong(f"is {row.status}: {row.received:,} of {row.size:,} bytes")
    return row


def _wrong(message: str) -> InvalidJobError:
    return InvalidJobError([FieldError("/query/upload", message)])
