"""The text of ``/metrics``: the processes' counters, and current values from the database."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import get_args

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.ops_metrics import HeldUploads, OperatingFigures, WaitingMessages, operating_figures
from app.domain.jobs.status import JobStatus
from app.domain.uploads.contract import UploadStatus
from app.ports import MetricsOfProcesses, Queue
from app.telemetry.exposition import Figures, render, snapshot
from app.telemetry.metrics import REGISTRY

KEPT_SECONDS = 5.0
"""However often and by how many it is asked for, the databases are asked this seldom."""
TIMEOUT_SECONDS = 3.0


class MetricsReader:
    """Reads all metrics; one an API process.

    Args:
        every_tenant: The database, as it is seen by nobody's request.
        board: Where the other processes show theirs.
        queue: The queue.
        process: How this process is called among them.
    """

    def __init__(
        self, every_tenant: AsyncEngine, board: MetricsOfProcesses, queue: Queue, process: str
    ) -> None:
        self._every_tenant = every_tenant
        self._board = board
        self._queue = queue
        self._process = process
        self._asking = asyncio.Lock()
        self._read_at = float("-inf")
        self._snapshots: dict[str, str] = {}
        self._figures: list[Figures] = []

    async def text(self) -> bytes:
        """Everything in Prometheus's text format. What can't be reached is left out, and said to be down."""
        async with self._asking:
            if clock.monotonic() - self._read_at > KEPT_SECONDS:
                await self._read()
                self._read_at = clock.monotonic()
        return render(self._snapshots | {self._process: snapshot(REGISTRY)}, self._figures)

    async def _read(self) -> None:
        figures, shown, waiting = await asyncio.gather(
            self._of_the_database(), self._of_the_processes(), self._of_the_queue()
        )
        self._snapshots = shown or {}
        self._figures = figures_of(figures, shown, waiting)

    async def _of_the_database(self) -> OperatingFigures | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._every_tenant.connect() as connection:
                return await operating_figures(connection)
        except (SQLAlchemyError, OSError):
            return None

    async def _of_the_processes(self) -> dict[str, str] | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._board.snapshots()
        except OSError:
            return None

    async def _of_the_queue(self) -> int | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._queue.length()
        except TimeoutError:
            return None


def figures_of(
    found: OperatingFigures | None, shown: Collection[str] | None, waiting: int | None
) -> list[Figures]:
    """What is read when it is asked for; of what can't be reached only that.

    Args:
        found: The database's figures.
        shown: What is on the board.
        waiting: Messages in the queue.
    """
    up = [
        (["database"], float(found is not None)),
        (["redis"], float(shown is not None and waiting is not None)),
    ]
    figures = [Figures("assay_up", "Whether the API reaches a part: 1 or 0.", ["part"], up)]
    if waiting is not None:
        figures.append(
            _single("assay_queue_messages", "Messages about shards that wait for a worker.", waiting)
        )
    return figures if found is None else [*figures, *_figures(found)]


def _figures(found: OperatingFigures) -> Iterator[Figures]:
    jobs = [([status.value], float(found.jobs.get(status.value, 0))) for status in JobStatus]
    yield Figures("assay_jobs", "Jobs by status.", ["status"], jobs)
    stopped = [([reason], float(count)) for reason, count in found.stopped.items()]
    yield Figures("assay_jobs_paused", "Paused jobs by the reason.", ["reason"], stopped)
    yield _single("assay_shards_leased", "Shards that a worker holds.", found.leased)
    yield _single(
        "assay_leases_expired", "Shards whose worker fell silent, not claimed again.", found.expired
    )
    shards = [([job.id], float(job.open_shards)) for job in found.active]
    yield Figures(
        "assay_job_open_shards", "Backlog: shards not done, of the newest active jobs.", ["job"], shards
    )
    responses = [([job.id], float(job.open_responses)) for job in found.active]
    yield Figures(
        "assay_job_open_responses",
        "Backlog: responses planned in shards that are not done.",
        ["job"],
        responses,
    )
    cost = [([job.id], job.usd) for job in found.active]
    yield Figures(
        "assay_job_cost_usd", "Known cost of an active job's finished shards, in US dollars.", ["job"], cost
    )
    yield from _of_messages(found.messages)
    yield from _of_uploads(found.uploads)


def _of_messages(found: WaitingMessages) -> Iterator[Figures]:
    yield _single("assay_webhook_messages", "Messages to webhooks that wait to be delivered.", found.count)
    yield _single(
        "assay_webhook_oldest_seconds",
        "Since when the oldest message waits, in seconds, however often it was tried.",
        found.oldest_seconds,
    )
    yield _single(
        "assay_webhook_overdue_seconds",
        "Since when the longest due message should be on its way, in seconds.",
        found.overdue_seconds,
    )


def _of_uploads(found: Mapping[str, HeldUploads]) -> Iterator[Figures]:
    held = [(status, found.get(status, HeldUploads(0, 0, 0))) for status in get_args(UploadStatus)]
    for name, meaning, count in (
        ("assay_uploads", "Uploads by status.", attrgetter("count")),
        ("assay_upload_bytes", "Bytes that have arrived of uploads that are kept.", attrgetter("received")),
        ("assay_upload_records", "Records of uploads that are kept.", attrgetter("records")),
    ):
        yield Figures(name, meaning, ["status"], [([status], float(count(each))) for status, each in held])


def _single(name: str, meaning: str, value: float) -> Figures:
    """A figure without labels."""
    return Figures(name, meaning, [], [([], float(value))])
