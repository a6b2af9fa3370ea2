"""A sweeper's look at schedules that dies: `python -m tests.integration.services.watching.dying_sweeper URL N`.

It kills itself before its N-th statement, or if it comes so far, when it tells the queue.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from itertools import count
from typing import Any

from sqlalchemy import event

from app.db.engine import connect
from app.services.watching.process import run_due
from tests.integration.jobs import RecordingQueue, submission_dependencies


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DyingQueue(RecordingQueue):
    async def announce_shards(self, shard_ids: Sequence[int]) -> None:
        die()


async def main(url: str, last: int) -> None:
    engine = connect(url, pool_size=4, application_name="dying sweeper")
    passed = count(1)

    def passes(*_: Any) -> None:
        if next(passed) == last:
            die()

    event.listen(engine.sync_engine, "before_cursor_execute", passes)
    event.listen(engine.sync_engine, "commit", passes)
    deps = submission_dependencies(engine, DyingQueue())
    await run_due(engine, lambda: deps)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
