"""Bodies that are too long for memory, as temporary files: bounded for each tenant and in all, and in time."""

import asyncio
import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import IO

from fastapi import Request

from app.api.http.limits import STALLED_SECONDS
from app.api.http.problems import BUSY_SECONDS, ProblemError
from app.domain.jobs.bundle import MOST_BYTES

TENANT_BYTES, ALL_BYTES = MOST_BYTES, 7 * MOST_BYTES // 4
"""Bytes of files that one tenant, and all tenants, have at a time."""
RECEIVE_SECONDS = 900.0
"""How soon a file has to be there."""


class ReceivedFile:
    """A file on the disk that has no name, so it goes when the process ends."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.size = size

    async def read_at(self, place: int, size: int) -> bytes:
        """Return bytes from a place on."""
        return await asyncio.to_thread(os.pread, self._file.fileno(), size, place)


class ReceivedFiles:
    """The files of one process."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @asynccontextmanager
    async def receive(self, request: Request, tenant: str) -> AsyncIterator[tuple[ReceivedFile, str]]:
        """Give the body as a file with its SHA-256.

        Raises:
            ProblemError: If it is too long, too slow, or too much beside other files.
        """
        announced = request.headers.get("content-length", "0")
        self._check(tenant, int(announced) if announced.isdecimal() else 0)
        with await asyncio.to_thread(tempfile.TemporaryFile) as file:
            found = _Arriving(file)
            try:
                async with _in_words():
                    async for chunk in _in_time(request):
                        self._check(tenant, found.size + len(chunk), held=found.size)
                        self._held[tenant] += len(chunk)
                        found.size += len(chunk)
                        await asyncio.to_thread(found.write, chunk)
                    await asyncio.to_thread(file.flush)
                yield ReceivedFile(file, found.size), found.digest.hexdigest()
            finally:
                self._held[tenant] -= found.size
                self._held += Counter()

    def _check(self, tenant: str, size: int, held: int = 0) -> None:
        if size > MOST_BYTES:
            detail = f"a bundle may have at most {MOST_BYTES:,} bytes"
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", detail)
        headers = {"Retry-After": BUSY_SECONDS, "Connection": "close"}
        if self._held[tenant] - held + size > TENANT_BYTES:
            detail = (
                f"bundles of this tenant that arrive now have more than {TENANT_BYTES:,} bytes; try again"
            )
            raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "too_many_uploads", detail, headers=headers)
        if self._held.total() - held + size > ALL_BYTES:
            detail = f"bundles that arrive now have more than {ALL_BYTES:,} bytes; try again"
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "too_many_uploads", detail, headers=headers)


class _Arriving:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.size = 0
        self.digest = hashlib.sha256()

    def write(self, chunk: bytes) -> None:
        self._file.write(chunk)
        self.digest.update(chunk)


@asynccontextmanager
async def _in_words() -> AsyncIterator[None]:
    """Bound the time that a body takes; say why it can't be stored."""
    try:
        async with asyncio.timeout(RECEIVE_SECONDS):
            yield
    except TimeoutError as error:
        raise _too_slow(f"the body must arrive within {RECEIVE_SECONDS:g} s") from error
    except OSError as error:
        detail = f"no room for temporary files: {error.strerror}"
        headers = {"Retry-After": BUSY_SECONDS, "Connection": "close"}
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "busy", detail, headers=headers) from error


async def _in_time(request: Request) -> AsyncIterator[bytes]:
    chunks = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                chunk = await anext(chunks, None)
        except TimeoutError as error:
            raise _too_slow(f"nothing has arrived for {STALLED_SECONDS:g} s") from error
        if chunk is None:
            return
        yield chunk


def _too_slow(detail: str) -> ProblemError:
    headers = {"Connection": "close"}
    return ProblemError(HTTPStatus.REQUEST_TIMEOUT, "body_too_slow", detail, headers=headers)
