"""Reads uploads that can be read only once they are complete: compressed files, and Parquet.

The process that took the last part reads them, beside its requests. How far it is stands in the database with the records, in one
transaction; if it dies, whoever looks at the upload after a minute goes on, and so does a reader who let others have a turn. Two who
read at once do no harm: one of them stores.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.health import is_away
from app.db.reasons import reason
from app.db.uploads import parts, uploads
from app.db.uploads.tables import UploadRow
from app.domain.errors import InvalidJobError
from app.domain.instruments.rules import Rules
from app.domain.uploads.records import Place, Read, RecordError, read_lines, read_rows
from app.importers.compressed import unpack
from app.importers.parquet import read_parquet
from app.importers.records import wrong_file
from app.services.long_texts import on_a_thread
from app.services.uploads.progress import progress, record_columns
from app.services.uploads.readings import GiveWay, TurnOverError
from app.services.uploads.stored_file import StoredFile

log = structlog.get_logger(__name__)

WAIT_SECONDS = 5.0
"""So long the request that brings the last part waits, so that small files are read when it is answered."""


class Step(NamedTuple):
    """Some records of a packed upload.

    Attributes:
        read: They.
        unpacked: Bytes of what the file holds that were read so far.
        last: Whether there are no more.
    """

    read: Read
    unpacked: int
    last: bool = False


class Reading(NamedTuple):
    """The reading of one upload.

    Attributes:
        engine: The database.
        tenant: Whose it is.
        upload_id: Its id.
        rules: Loads the versions of rules that its texts are read by.
        most_bytes: How long it may be, unpacked.
    """

    engine: AsyncEngine
    tenant: str
    upload_id: str
    rules: Callable[[UploadRow], Rules]
    most_bytes: int

    async def run(self, give_way: GiveWay) -> None:
        """Reads it, unless somebody else is at it; what keeps it from that is logged.

        Raises:
            TurnOverError: If others shall be read before the rest of it.
        """
        try:
            await self._read(give_way)
        except TurnOverError:
            raise
        except Exception as error:
            if is_away(error):
                log.warning("reading an upload failed", upload=self.upload_id, reason=reason(error))
            else:
                log.exception("reading an upload failed", upload=self.upload_id)

    async def _read(self, give_way: GiveWay) -> None:
        async with self.engine.begin() as connection:
            if not await parts.claim(connection, self.tenant, self.upload_id):
                return
            row = await uploads.find(connection, self.tenant, self.upload_id)
        if row is None:
            return
        file = StoredFile(self.engine, self.tenant, self.upload_id, row.size)
        steps = _steps(file, row, self.rules(row), self.most_bytes)
        try:
            while row is not None and row.status == "reading":
                step = await on_a_thread(self.tenant, partial(file.during, partial(next, steps)))
                row = await self._store(row, step)
                if not step.last:
                    give_way()
        except BaseException:
            async with self.engine.begin() as connection:
                await parts.release(connection, self.tenant, self.upload_id)
            raise

    async def _store(self, row: UploadRow, step: Step) -> UploadRow | None:
        """The upload after a step; ``None`` if somebody else has gone on with it, or deleted it."""
        values = progress(row, step.read, last=step.last) | {"unpacked": step.unpacked}
        async with self.engine.begin() as connection:
            if not await parts.advance(connection, self.tenant, self.upload_id, row.unpacked, values):
                return None
            columns = map(record_columns, step.read.records)
            await uploads.add_records(connection, self.tenant, self.upload_id, row.records, columns)
            if values["error_count"]:
                await uploads.drop_records(connection, self.tenant, self.upload_id)
            if values["status"] != "reading":
                await parts.drop(connection, self.tenant, self.upload_id)
            return await uploads.find(connection, self.tenant, self.upload_id)


def _steps(file: StoredFile, row: UploadRow, rules: Rules, most: int) -> Iterator[Step]:
    """Reads a file from where it was left, up to the first records that are wrong."""
    at = Step(Read(Place(row.lines, row.tail, row.skipping)), row.unpacked)
    some = _rows(file, at, rules, most) if row.format == "parquet" else _lines(file, row, rules, most)
    try:
        for step in some:
            at = step
            yield step
        yield Step(read_lines(at.read.place, b"", rules, last=True), at.unpacked, last=True)
    except InvalidJobError as error:
        told = error.errors[0]
        message = f"{told.message} ({told.pointer})" if told.pointer else told.message
        wrong = Read(at.read.place, errors=[RecordError(0, "", message)], wrong=1)
        yield Step(wrong, at.unpacked, last=True)


def _rows(file: StoredFile, at: Step, rules: Rules, most: int) -> Iterator[Step]:
    for some in read_parquet(file, skip=at.read.place.lines):
        at = Step(read_rows(at.read.place.lines + 1, some.rows, rules), at.unpacked + some.size)
        if at.unpacked > most:
            raise wrong_file(f"unpacks to more than {most:,} bytes")
        yield at


def _lines(file: StoredFile, row: UploadRow, rules: Rules, most: int) -> Iterator[Step]:
    place, unpacked = Place(row.lines, row.tail, row.skipping), row.unpacked
    codec: Literal["gzip", "zstd"] = "gzip" if row.format == "gzip" else "zstd"
    for piece in unpack(file, codec, skip=unpacked, most=most):
        read, unpacked = read_lines(place, piece, rules, last=False), unpacked + len(piece)
        place = read.place
        yield Step(read, unpacked)
