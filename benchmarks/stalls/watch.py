"""The longest time for which an event loop stood still."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

WAKE_SECONDS = 0.001


async def longest_stall(work: Callable[[], Awaitable[object]]) -> float:
    """How long the loop stood still at most between two turns while something was done, in milliseconds.

    Of the time between two turns counts what this process computed in it, on the loop and on threads: other programs of a busy machine
    do not count, and what did not hold Python's lock, such as compressing, counts no longer than it took.
    """
    gc.collect()
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            used, begun = time.process_time(), time.perf_counter()
            await asyncio.sleep(WAKE_SECONDS)
            wall = time.perf_counter() - begun
            longest = max(longest, min(time.process_time() - used, wall))

    watching = asyncio.create_task(watch())
    await asyncio.sleep(2 * WAKE_SECONDS)
    await work()
    await asyncio.sleep(2 * WAKE_SECONDS)
    watching.cancel()
    return round(longest * 1000, 1)
