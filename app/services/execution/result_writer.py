"""Group commit: rows that arrive while a transaction runs are written together by the next one.

At low load a row is durable within one transaction's time and 20 ms more at most, at high load within 80. Replies that are not
written yet are lost with a worker that dies, and paid for again, as are the calls on the wire; so they are kept to fewer than those.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import structlog

from app import clock
from app.db.execution.result_rows import CallRow, Held, ResultWriter, Row
from app.db.execution.shards import AnyClaim
from app.db.health import is_away, within
from app.db.reasons import reason
from app.telemetry.metrics import ROWS_LOST, WRITER_BACKLOG
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

RETRY_SECONDS = 900.0
"""How long a batch is offered to a database that is away or frozen: its rows are paid for. No call starts meanwhile, as the leases run out.
A shard that is given back, also one whose lease was lost, waits no longer for its rows."""

AGAIN_SECONDS = 0.5
"""Time before a batch is offered again."""

SHORTEST_REST_SECONDS = 0.02
"""Between the beginnings of two transactions: each costs both sides as much as a hundred rows. The first after a pause begins at once."""

LONGEST_REST_SECONDS = 0.08
"""Likewise, while there is much to write."""

BUSY_ROWS = 2_500
"""Rows within a second for which the longest rest is taken; for fewer it is shorter in proportion."""

WIRE_SHARE = 2
"""The rest ends early once a call waits to be written for so many on the wire: fast calls would be lost in greater number than those.
So it does where no further call may start."""

WORTH_A_TRANSACTION = 32
"""Calls below which the rest does not end early."""

MOST_UNWRITTEN = 512
"""With so many calls that are not written no further one starts: what is paid for must get to disk."""


STALE_SECONDS = 15.0
"""Time of one transaction from which its process counts as in trouble."""


class StaleClaimError(Exception):
    """Another worker holds the shard now; our rows were refused."""


class Batch:
    """Rows that become durable together."""

    def __init__(self) -> None:
        self.rows: dict[Held, list[Row]] = {}
        self.size = self.calls = 0
        self.stale: set[Held] = set()
        self.failed: dict[Held, Exception] = {}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def durable(self, claim: AnyClaim) -> None:
        """Waits until the batch is committed.

        Raises:
            StaleClaimError: If the claim was no longer valid.
            Exception: If the database refused the claim's rows or stayed away.
        """
        await asyncio.shield(self.done)
        if _held(claim) in self.failed:
            raise self.failed[_held(claim)]
        if _held(claim) in self.stale:
            raise StaleClaimError


class Pace:
    """How long the writer rests between two transactions.

    The end of a small job waits for its last rows; a busy worker has other things to do meanwhile.
    """

    def __init__(self) -> None:
        self._recent = 0.0
        self._begun = float("-inf")

    def begin(self, rows: int, now: float) -> float:
        """Takes note of a transaction.

        Args:
            rows: In it.
            now: When it begins.

        Returns:
            When the next one may begin.
        """
        self._recent += rows - min(now - self._begun, 1.0) * self._recent  # rows of the last second, about
        self._begun = now
        rest = self._recent / BUSY_ROWS * LONGEST_REST_SECONDS
        return now + min(max(rest, SHORTEST_REST_SECONDS), LONGEST_REST_SECONDS)


class BatchWriter:
    """Gathers rows of all shards of a process and writes them, one transaction after the other.

    Args:
        writer: Writes a transaction.
        most_unwritten: Calls that may wait to be written while others start.

    Attributes:
        on_the_wire: Calls whose rows are still to come; whoever makes calls counts them here.
    """

    def __init__(self, writer: ResultWriter, most_unwritten: int = MOST_UNWRITTEN) -> None:
        self.on_the_wire = 0
        self._writer = writer
        self._most_unwritten = most_unwritten
        self._open: Batch | None = None
        self._pending = self._unwritten = 0
        self._writing_since: float | None = None
        self._wake = asyncio.Event()
        self._due = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._room = asyncio.Event()
        self._room.set()
        WRITER_BACKLOG.set_function(lambda: self._pending)

    def add(self, claim: AnyClaim, *rows: Row) -> Batch:
        """Puts rows into the batch that is open; they are written in the order in which they were added."""
        batch = self._open
        if batch is None:
            self._open = batch = Batch()
            self._idle.clear()
            self._wake.set()
        batch.rows.setdefault(_held(claim), []).extend(rows)
        batch.size += len(rows)
        self._pending += len(rows)
        calls = 0
        for row in rows:
            if type(row) is CallRow:
                calls += 1
        if calls:
            batch.calls += calls
            self._unwritten += calls
            is_full = self._unwritten >= self._most_unwritten
            if is_full:
                self._room.clear()
            if is_full or batch.calls >= max(WORTH_A_TRANSACTION, self.on_the_wire // WIRE_SHARE):
                self._due.set()
        return batch

    @property
    def trouble(self) -> str | None:
        """What keeps rows from being written; ``None`` if nothing does."""
        since = self._writing_since
        waited = 0.0 if since is None else clock.monotonic() - since
        return (
            f"{self._pending} rows have waited {waited:.0f} s to be written"
            if waited > STALE_SECONDS
            else None
        )

    @property
    def has_room(self) -> bool:
        """Whether calls may start: not too much is waiting to be written."""
        return self._unwritten < self._most_unwritten

    async def wait_for_room(self) -> None:
        """Waits while too much is waiting to be written."""
        await self._room.wait()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Writes in the background; on leaving, everything that was added has been written or has failed."""
        async with vital_tasks(result_writer=self._run()):
            try:
                yield
            finally:
                await self._idle.wait()

    async def _run(self) -> None:
        loop, pace, rested = asyncio.get_running_loop(), Pace(), 0.0
        while True:
            await self._wake.wait()
            rest = loop.call_at(rested, self._due.set)
            await self._due.wait()
            rest.cancel()
            self._wake.clear()
            self._due.clear()
            batch, self._open = self._open, None
            if batch is None:
                continue
            rested = pace.begin(batch.size, loop.time())
            self._writing_since = clock.monotonic()
            try:
                await self._settle(batch)
            finally:
                self._writing_since = None
                batch.done.set_result(None)
                self._pending -= batch.size
                self._unwritten -= batch.calls
                if self.has_room:
                    self._room.set()
                if self._open is None:
                    self._idle.set()

    async def _settle(self, batch: Batch) -> None:
        """Writes a batch whole or, if a row in it is refused, claim by claim, so that one shard's row harms no other."""
        try:
            batch.stale = await self._write(batch.rows)
        except Exception as error:  # noqa: BLE001 - its shards are told; the batches after it must go on
            if len(batch.rows) == 1 or is_away(error):
                ROWS_LOST.inc(batch.size)
                log.error("rows lost", rows=batch.size, error=type(error).__name__)  # noqa: TRY400 - no texts in logs
                batch.failed = dict.fromkeys(batch.rows, error)
                return
            for held, rows in batch.rows.items():
                alone = Batch()
                alone.rows, alone.size = {held: rows}, len(rows)
                await self._settle(alone)
                batch.stale |= alone.stale
                batch.failed |= alone.failed

    async def _write(self, rows: Mapping[Held, Sequence[Row]]) -> set[Held]:
        now = asyncio.get_running_loop().time
        deadline = now() + RETRY_SECONDS
        while True:
            try:
                return await within(self._writer.write(rows), deadline - now())
            except Exception as error:
                if not is_away(error) or now() + AGAIN_SECONDS > deadline:
                    raise
                log.warning("database away, writing again", reason=reason(error))
                await asyncio.sleep(AGAIN_SECONDS)


def _held(claim: AnyClaim) -> Held:
    return claim.shard_id, claim.token
