"""A file that a process's event loop touches, for probes: they need no port of the process, and start no program of ours."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from app.telemetry.vital import vital_tasks

BEAT_SECONDS = 5.0
"""How often it is touched. Probes should take a file as dead that is six times as old."""


@contextlib.asynccontextmanager
async def beating(file: Path | None) -> AsyncIterator[None]:
    """Touches a file every few seconds, on the loop itself: once the loop stands still, the file grows old.

    Args:
        file: Should be in memory, as a disk could hold up the loop; ``None`` for no heartbeat.

    Raises:
        OSError: If the file can't be made.
    """
    if file is None:
        yield
        return
    _touch(file)
    async with vital_tasks(heartbeat=_beat(file)):
        yield


async def _beat(file: Path) -> None:
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        with contextlib.suppress(OSError):  # a probe sees that it grows old
            _touch(file)


def _touch(file: Path) -> None:
    file.touch()
