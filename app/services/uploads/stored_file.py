"""An upload's bytes in the database, read like a file by a thread beside the event loop."""

import asyncio
import io
import os
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.uploads import parts

T = TypeVar("T")


class StoredFileError(Exception):
    """The bytes can't be had: the upload is gone, or the database away."""


class StoredFile(io.RawIOBase):
    """A file for readers that know nothing of databases; of one reader, on a thread of the running loop's process.

    Attributes:
        failed: Why bytes could not be had; whatever its reader made of that.
    """

    def __init__(self, engine: AsyncEngine, tenant: str, upload_id: str, size: int) -> None:
        self._engine, self._tenant, self._upload_id, self._size = engine, tenant, upload_id, size
        self._loop = asyncio.get_running_loop()
        self._at = 0
        self.failed: BaseException | None = None

    def during(self, work: Callable[[], T]) -> T:
        """What somebody finds who reads it.

        Raises:
            Exception: What kept the file's bytes from being had, whatever the reader made of it.
        """
        try:
            found = work()
        except Exception:
            if self.failed is not None:
                raise self.failed from None
            raise
        if self.failed is not None:
            raise self.failed
        return found

    def readable(self) -> bool:
        """It can be read."""
        return True

    def seekable(self) -> bool:
        """From any place on."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Goes to a place."""
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def tell(self) -> int:
        """Where it is."""
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Fills a buffer; less of it at the end."""
        into = memoryview(buffer).cast("B")
        data = self.read(len(into))
        into[: len(data)] = data
        return len(data)

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes; fewer at the end."""
        left = max(0, self._size - self._at)
        wanted = left if size < 0 else min(size, left)
        if not wanted:
            return b""
        try:
            data = asyncio.run_coroutine_threadsafe(self._read(wanted), self._loop).result()
        except BaseException as error:
            self.failed = error
            raise
        self._at += len(data)
        return data

    async def _read(self, size: int) -> bytes:
        async with self._engine.connect() as connection:
            data = await parts.read(connection, self._tenant, self._upload_id, self._at, size)
        if len(data) < size:
            raise StoredFileError("the upload was deleted while it was read")
        return data
