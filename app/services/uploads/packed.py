"""Reads uploads that can be read only once they are complete: compressed files, and Parquet.

A child of the process that took the last part reads them. How far it is stands in the database with the records, in one
transaction; if it dies, whoever looks at the upload after a minute goes on, and so does a reader who let others have a turn. Two who
read at once do no harm: one of them stores.
"""

import asyncio
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.health import is_away
from app.db.reasons import reason
from app.db.uploads import parts, uploads
from app.db.uploads.tables import UploadRow
from app.domain.errors import InvalidJobError
from app.readers.pool import ReaderPool, twice
from app.services.uploads.progress import place_of, progress
from app.services.uploads.readings import GiveWay, TurnOverError
from app.services.uploads.stored_file import StoredFile
from app.services.uploads.upload_reader import Part, read_packed

log = structlog.get_logger(__name__)

WAIT_SECONDS = 5.0
"""So long the request that brings the last part waits, so that small files are read when it is answered."""


class Reading(NamedTuple):
    """The reading of one upload.

    Attributes:
        engine: The database.
        readers: Child processes that read files.
        tenant: Whose it is.
        upload_id: Its id.
        most_bytes: How long it may be, unpacked.
    """

    engine: AsyncEngine
    readers: ReaderPool
    tenant: str
    upload_id: str
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
        try:
            await twice(partial(self._read_on, give_way))
        except InvalidJobError as error:
            await self._refuse(error)
        except BaseException:
            async with self.engine.begin() as connection:
                await parts.release(connection, self.tenant, self.upload_id)
            raise

    async def _row(self) -> UploadRow | None:
        async with self.engine.connect() as connection:
            return await uploads.find(connection, self.tenant, self.upload_id)

    async def _read_on(self, give_way: GiveWay) -> None:
        """Read from where the last reading stopped."""
        row = await self._row()
        if row is None or row.status != "reading":
            return
        file = StoredFile(self.engine, self.tenant, self.upload_id, row.size)
        arguments = (row.format, place_of(row), row.unpacked, row.rules, self.most_bytes)
        async with aclosing(self.readers.run(self.tenant, file, read_packed, *arguments)) as parts_read:
            async for data in parts_read:
                part = await asyncio.to_thread(Part.from_json, data)
                row = await self._store(row, part)
                if row is None or row.status != "reading":
                    return
                give_way()

    async def _refuse(self, error: InvalidJobError) -> None:
        row = await self._row()
        if row is not None and row.status == "reading":
            await self._store(row, Part.refused(place_of(row), error, row.unpacked))

    async def _store(self, row: UploadRow, part: Part) -> UploadRow | None:
        """Return the upload after a part; ``None`` if somebody else has gone on with it, or deleted it."""
        values = progress(row, part, last=part.last) | {"unpacked": part.unpacked}
        async with self.engine.begin() as connection:
            if not await parts.advance(connection, self.tenant, self.upload_id, row.unpacked, values):
                return None
            await uploads.add_records(connection, self.tenant, self.upload_id, row.records, part.records)
            if values["error_count"]:
                await uploads.drop_records(connection, self.tenant, self.upload_id)
            if values["status"] != "reading":
                await parts.drop(connection, self.tenant, self.upload_id)
            return await uploads.find(connection, self.tenant, self.upload_id)
