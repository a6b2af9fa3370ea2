"""Long-lived background tasks. The unexpected end of one ends its process, whose supervisor starts it again."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)

EXIT_CODE = 70
"""Exit status of a process that lost a vital task (``EX_SOFTWARE``)."""

Work = Coroutine[Any, Any, None]


def start_vital(name: str, work: Work, *, may_return: bool = False) -> asyncio.Task[None]:
    """Start a task that the process cannot do without.

    Nothing that was written is lost when the process ends: jobs go on elsewhere, as after a kill.

    Args:
        name: Name for the log.
        work: Runs until it is cancelled.
        may_return: The work may also return, such as a pump that ends when nothing waits; only an exception is unexpected.
    """

    def check(ended: asyncio.Task[None]) -> None:
        if ended.cancelled() or (may_return and ended.exception() is None):
            return
        log.critical("vital task ended unexpectedly; the process ends", task=name, exc_info=ended.exception())
        end_process()

    task = asyncio.create_task(work, name=name)
    task.add_done_callback(check)
    return task


@contextlib.asynccontextmanager
async def vital_tasks(**works: Work) -> AsyncIterator[None]:
    """Run vital tasks, by name, within the block; cancel them at its end."""
    tasks = [start_vital(name.replace("_", " "), work) for name, work in works.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def end_process() -> None:
    """End the process at once, without cleaning up."""
    os._exit(EXIT_CODE)
