"""Makes records of an upload that is another tool's file."""

import io
import re
from collections.abc import Callable
from functools import partial
from typing import Any, BinaryIO

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.uploads import uploads
from app.db.uploads.tables import UploadRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.rules import Rules
from app.domain.jobs.import_preview import ImportPreview
from app.domain.uploads.formats import TOOL_FILE
from app.domain.uploads.records import Record, read_rows
from app.importers.bodies import Keep
from app.importers.registry import AT_ONCE, FileImport
from app.services.identifiers import id_form
from app.services.long_texts import on_a_thread
from app.services.uploads.progress import record_columns
from app.services.uploads.readings import GiveWay
from app.services.uploads.stored_file import StoredFile
from app.services.uploads.uploads import UPLOAD, UploadDependencies, current_rules

PIECE_BYTES = 1024 * 1024
Begin = Callable[[BinaryIO, str, Keep], FileImport]
"""Begins to read a file of a name, whose responses are taken by the function that is given."""


class _Records:
    """Responses as records of an upload, until they are written."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._read: list[Record] = []
        self.count = 0

    def keep(self, response: dict[str, Any]) -> str | None:
        """Takes a response; says why not, if it can't be a record."""
        read = read_rows(self.count + 1, [response], self._rules)
        if read.errors:
            told = read.errors[0]
            return f"{told.field.removeprefix('/')}: {told.message}" if told.field else told.message
        self._read += read.records
        self.count += 1
        return None

    def taken(self) -> list[Record]:
        """Those that came since the last call."""
        read, self._read = self._read, []
        return read


async def make_records(
    deps: UploadDependencies, tenant: str, upload_id: str, begin: Begin, _give_way: GiveWay
) -> ImportPreview:
    """Reads another tool's file, and makes its texts the upload's records in place of those of earlier calls.

    All of them or none: in one transaction, so it gives no way. Of the file, and of the records, little is held at a time.

    Raises:
        InvalidJobError: If there is no such file, part of it is missing, or it can't be read.
    """
    row = await _file(deps.engine, tenant, upload_id)
    raw = StoredFile(deps.engine, tenant, upload_id, row.size)
    file, records = io.BufferedReader(raw, PIECE_BYTES), _Records(current_rules(deps.rules))
    work = partial(begin, file, row.name or "", records.keep)
    found = await on_a_thread(tenant, partial(raw.during, work))
    async with deps.engine.begin() as connection:
        if not await uploads.keep(connection, tenant, upload_id):
            raise _wrong("was deleted meanwhile")
        await uploads.drop_records(connection, tenant, upload_id)
        more = True
        while more:
            first = records.count
            more = await on_a_thread(tenant, partial(raw.during, partial(found.read, AT_ONCE)))
            columns = map(record_columns, records.taken())
            await uploads.add_records(connection, tenant, upload_id, first, columns)
        preview = found.preview({"upload": upload_id})
        written = {
            "records": records.count,
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
