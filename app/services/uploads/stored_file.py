"""An upload's bytes in the database, as readers in child processes request them."""

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.uploads import parts


class StoredFileError(Exception):
    """The bytes are missing: the upload is gone."""


class StoredFile:
    """An upload's bytes."""

    def __init__(self, engine: AsyncEngine, tenant: str, upload_id: str, size: int) -> None:
        self._engine, self._tenant, self._upload_id = engine, tenant, upload_id
        self.size = size

    async def read_at(self, place: int, size: int) -> bytes:
        """Return bytes from a place on."""
        async with self._engine.connect() as connection:
            data = await parts.read(connection, self._tenant, self._upload_id, place, size)
        if len(data) < size:
            raise StoredFileError("the upload was deleted while it was read")
        return data
