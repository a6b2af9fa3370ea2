"""Uploads: files of responses that arrive in parts, are read as they do, and are then used by jobs."""

import asyncio
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.uploads import parts, uploads
from app.db.uploads.tables import UploadRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.rules import RuleBook
from app.domain.jobs.stored_texts import MOST_UPLOADED, UploadedTexts
from app.domain.jobs.text_source import StoredText, UploadedText
from app.domain.judging.text_notes import TextNotes
from app.domain.uploads.contract import Upload
from app.domain.uploads.formats import HEAD_BYTES, TOOL_FILE, Format, format_of
from app.domain.uploads.judged import as_uploaded, elsewhere
from app.domain.uploads.records import read_lines
from app.readers.pool import SHORT_BYTES, BytesSource, ReaderPool
from app.services.errors import NotFoundError
from app.services.identifiers import id_form, new_id
from app.services.long_texts import on_a_thread
from app.services.uploads.packed import WAIT_SECONDS, Reading
from app.services.uploads.progress import place_of, progress
from app.services.uploads.readings import Readings
from app.services.uploads.upload_reader import Part, load_rules, read_piece

UPLOAD = "upl"
MOST_UPLOADS = 100
"""Of one tenant at a time."""
NAME_LENGTH = 300
"""So much of a file's name is shown."""
PURPOSE, TO_IMPORT = "purpose", "import"
"""The metadata that tell an upload of another tool's file."""
NO_SUCH = "there is no such upload"
PLACES: dict[str | None, str] = {"parquet": "rows", TOOL_FILE: "records"}
"""What of a file is counted, where that is not lines."""
TOOL_FILE_BYTES = 256 * 1024 * 1024
"""How long a file to import may be, and what it unpacks to."""
KEPT_SECONDS = 60.0
"""So long what a file to import has is kept for the request that asks for it again."""


class UploadQuotaError(Exception):
    """A tenant's uploads hold too much; the message says how much."""


class UploadTooLargeError(Exception):
    """An upload is announced that is larger than one may be."""


class OffsetError(Exception):
    """A part does not begin where the last one ended.

    Attributes:
        received: Where that is.
    """

    def __init__(self, received: int) -> None:
        super().__init__(f"the next part begins at byte {received:,}")
        self.received = received


@dataclass(frozen=True, slots=True)
class UploadDependencies:
    """What uploads take.

    Attributes:
        engine: The database.
        readers: Child processes that read files.
        rules: Versions of the rules that texts are read by.
        most_bytes: Of one upload.
        tenant_bytes: Of all uploads of a tenant.
        days: After so many an upload is deleted to which nothing is added.
        packed: Reads files that can be read only once they are complete.
        tool_files: Reads other tools' files.
    """

    engine: AsyncEngine
    readers: ReaderPool
    rules: RuleBook
    most_bytes: int
    tenant_bytes: int
    days: int
    packed: Readings[None] = field(default_factory=Readings)
    tool_files: Readings[bytes] = field(default_factory=partial(Readings, KEPT_SECONDS))

    def expires_at(self) -> datetime:
        """When an upload expires to which something is added now."""
        return clock.now() + timedelta(days=self.days)


async def create_upload(
    deps: UploadDependencies, tenant: str, size: int, metadata: Mapping[str, str]
) -> Upload:
    """Creates an upload.

    Raises:
        InvalidJobError: If it would be empty.
        UploadTooLargeError: If it would be too large, by its purpose.
        UploadQuotaError: If the tenant's uploads would hold too much.
    """
    purpose = metadata.get(PURPOSE)
    if purpose not in {None, TO_IMPORT}:
        message = f"`{PURPOSE}` must be `{TO_IMPORT}`, or left out for responses"
        raise InvalidJobError([FieldError("/header/Upload-Metadata", message)])
    format_ = None if purpose is None else TOOL_FILE
    most = deps.most_bytes if format_ is None else min(deps.most_bytes, TOOL_FILE_BYTES)
    if size > most:
        what = "an upload" if format_ is None else "a file to import"
        raise UploadTooLargeError(f"{what} may have at most {most:,} bytes")
    if size < 1:
        raise InvalidJobError([FieldError("/header/Upload-Length", "must be at least 1")])
    upload_id, name = new_id(UPLOAD), metadata.get("filename")
    async with deps.engine.begin() as connection:
        held = await uploads.lock_held(connection, tenant)
        if held.uploads >= MOST_UPLOADS:
            raise UploadQuotaError(f"there are {held.uploads:,} uploads already; delete one")
        if held.size + size > deps.tenant_bytes:
            message = f"uploads of this tenant take {held.size:,} of {deps.tenant_bytes:,} bytes; delete one"
            raise UploadQuotaError(message)
        rules = dict(deps.rules.current)
        await uploads.create(
            connection,
            {
                "id": upload_id,
                "tenant": tenant,
                "name": name and name[:NAME_LENGTH],
                "file_metadata": list(metadata.items()),
                "format": format_,
            }
            | {"status": "receiving", "size": size, "rules": rules, "expires_at": deps.expires_at()},
        )
        return _shown(await _row(connection, tenant, upload_id))


async def find_upload(deps: UploadDependencies, tenant: str, upload_id: str, wait: float = 0) -> Upload:
    """An upload; sees to it that a complete one is read.

    Args:
        deps: What it takes.
        tenant: Whose it is.
        upload_id: Its id.
        wait: So many seconds at most it is waited until it is read.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with deps.engine.connect() as connection:
        row = await _row(connection, tenant, upload_id)
    if row.status == "reading":
        reading = Reading(deps.engine, deps.readers, tenant, upload_id, deps.most_bytes)
        await deps.packed.read(tenant, upload_id, None, reading.run, wait)
        async with deps.engine.connect() as connection:
            row = await _row(connection, tenant, upload_id)
    return _shown(row)


async def list_uploads(
    engine: AsyncEngine, tenant: str, *, after: tuple[datetime, str] | None, limit: int
) -> list[Upload]:
    """A tenant's uploads, newest first."""
    async with engine.connect() as connection:
        return [_shown(row) for row in await uploads.read_page(connection, tenant, after=after, limit=limit)]


async def delete_upload(engine: AsyncEngine, tenant: str, upload_id: str) -> None:
    """Deletes an upload with its records. Jobs that used it keep their texts.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.begin() as connection:
        if not await uploads.remove(connection, tenant, upload_id):
            raise NotFoundError(NO_SUCH)


async def add_part(
    deps: UploadDependencies, tenant: str, upload_id: str, offset: int, piece: bytes
) -> Upload:
    """Stores the next bytes of an upload, and reads the records that they complete.

    All of it or nothing: in one transaction, which ends before anybody is told. A packed file is read once all of it is there.

    Raises:
        NotFoundError: If the tenant has no such upload.
        OffsetError: If they don't begin where the last ones ended.
        UploadTooLargeError: If they go beyond the upload's end.
    """
    async with deps.engine.connect() as connection:
        row = await _row(connection, tenant, upload_id)
    end = offset + len(piece)
    if offset != row.received:
        raise OffsetError(row.received)
    if end > row.size:
        raise UploadTooLargeError(f"the upload ends at byte {row.size:,}")
    if not piece:  # a part may be empty; the end of a file is read once
        return _shown(row)
    row.format = row.format or _format(row.tail + piece, complete=end == row.size)
    if row.format == "lines":
        read = await _read(deps, row, piece, last=end == row.size)
        values = progress(row, read, last=end == row.size)
        part, records = b"", [] if values["error_count"] else read.records
    else:
        tail, part = (row.tail + piece, b"") if row.format is None else (b"", row.tail + piece)
        complete = "ready" if row.format == TOOL_FILE else "reading"
        values = {"tail": tail, "status": "receiving" if end < row.size else complete}
        records = []
    values |= {"received": end, "format": row.format, "expires_at": deps.expires_at()}
    async with deps.engine.begin() as connection:
        if not await uploads.advance(connection, tenant, upload_id, offset, values):
            raise OffsetError((await _row(connection, tenant, upload_id)).received)
        if values["status"] == "invalid" and not row.error_count:
            await uploads.drop_records(connection, tenant, upload_id)
        if part:
            await parts.add(connection, tenant, upload_id, end - len(part), part)
        await uploads.add_records(connection, tenant, upload_id, row.records, records)
    return await find_upload(deps, tenant, upload_id, WAIT_SECONDS)


def _format(head: bytes, *, complete: bool) -> Format | None:
    """The form of a file that begins so; ``None`` if more is needed to tell."""
    return format_of(head) if complete or len(head) >= HEAD_BYTES else None


async def uploaded_texts(
    engine: AsyncEngine, tenant: str, upload_id: str, leave_out: Collection[str]
) -> UploadedTexts | str:
    """Return the responses of an upload, or why a job can't use it.

    Args:
        engine: Where to look.
        tenant: Whose upload it must be.
        upload_id: The upload.
        leave_out: Notes whose sentences the job leaves out.
    """
    if re.fullmatch(id_form(UPLOAD), upload_id) is None:
        return NO_SUCH
    async with engine.connect() as connection:
        # Locked, or its records might go meanwhile.
        row = await uploads.find(connection, tenant, upload_id, lock=True)
        if row is None:
            return NO_SUCH
        fault = _fault(row)
        if fault is not None:
            return fault
        same: dict[str, str] = {}
        texts = [
            _taken(upload_id, record, same, leave_out)
            async for record in uploads.read_records(connection, tenant, upload_id)
        ]
    return UploadedTexts(row.rules, texts, PLACES.get(row.format, "lines"))


def _fault(row: UploadRow) -> str | None:
    """Why a job can't use an upload."""
    if row.status == "reading":
        return "is being read; try again when it is ready"
    if row.status != "ready":
        return f"is {row.status}: {row.received:,} of {row.size:,} bytes, {row.error_count:,} errors"
    if row.format == TOOL_FILE and not row.records:
        return "is another tool's file, of which POST /v1/imports has not made records yet"
    if row.records > MOST_UPLOADED:
        return f"{row.records:,} texts; at most {MOST_UPLOADED:,}: upload them as several files"
    return None


def _taken(upload_id: str, record: Any, same: dict[str, str], leave_out: Collection[str]) -> UploadedText:
    """A record as a job takes it; a name that many have is held once, among the ``same``."""

    def once(name: str) -> Any:
        value = getattr(record, name)
        return value if value is None else same.setdefault(value, value)

    stored = StoredText(
        *(once("model"), once("persona"), once("task"), once("item"), record.run or 0, record.instruction),
        *(once("status"), record.sentences, (record.ordinal, 0, 0)),
        question=once("question"),
        upload=upload_id,
        elsewhere=elsewhere(record.judged),
    )
    notes = TextNotes.of(record.notes) if leave_out else None
    left = notes.left_out(leave_out) if notes else {}
    if left:
        spans = [span for span in zip(record.starts, record.ends, strict=True) if span not in left]
        written = tuple(f"{{{','.join(map(str, offsets))}}}" for offsets in zip(*spans, strict=True))
        stored = replace(
            stored,
            sentences=len(spans),
            spans=(written[0], written[1]) if spans else ("{}", "{}"),
            notes=notes.stored() if notes else None,
        )
    return as_uploaded(record.line, record.run, stored, record.judged)


async def _read(deps: UploadDependencies, row: UploadRow, piece: bytes, *, last: bool) -> Part:
    """Read the next bytes of JSON Lines by the rules that the upload began with; of long ones in a child process."""
    place, keep = place_of(row), not row.error_count
    if len(place.tail) + len(piece) <= SHORT_BYTES:
        rules = load_rules(row.rules, deps.rules)
        work = partial(read_lines, place, piece, rules, last=last, keep=keep)
        return Part.of(await on_a_thread(row.tenant, work))
    try:
        arguments = (place, dict(row.rules), last, keep)
        data = await deps.readers.whole(row.tenant, BytesSource(piece), read_piece, *arguments)
    except InvalidJobError as error:
        return Part.refused(place, error)
    return await asyncio.to_thread(Part.from_json, data)


async def _row(connection: Any, tenant: str, upload_id: str) -> UploadRow:
    row = await uploads.find(connection, tenant, upload_id)
    if row is None:
        raise NotFoundError(NO_SUCH)
    return row


def _shown(row: UploadRow) -> Upload:
    names = Upload.model_fields.keys() - {"object", "metadata"}
    return Upload(metadata=dict(row.file_metadata), **{name: getattr(row, name) for name in names})
