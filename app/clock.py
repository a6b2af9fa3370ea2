"""The process's clocks: every other module of the service reads them here, so that a test can move them together.

Waits on an event loop (`asyncio.sleep`, `asyncio.timeout`, `loop.time`) follow the loop, which a test moves as well. Postgres and
Redis have clocks of their own, which decide wherever several processes have to agree.
"""

import time
from datetime import UTC, datetime

monotonic = time.monotonic
"""Seconds since an unknown moment; measures durations."""
time_ns = time.time_ns
"""Nanoseconds since 1970."""
sleep = time.sleep
"""Blocks the calling thread."""


def milliseconds_since(started: float) -> float:
    """Milliseconds since a reading of :func:`monotonic`."""
    return (monotonic() - started) * 1000


def now() -> datetime:
    """Current time in UTC."""
    return datetime.now(UTC)
