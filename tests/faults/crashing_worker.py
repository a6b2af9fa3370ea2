"""A worker that dies at a named point: `celery -A tests.faults.crashing_worker:app worker`.

The file that `CRASH_FILE` names says where, as `<point> <moment> <n>`: at the n-th passage the process removes the
file, so that only one of several does, and kills itself. Without the file nothing happens.
"""

import asyncio
import functools
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import app.services.batches.files as batch_files_module
import app.services.execution.model_caller as model_caller_module
import app.services.results.finalize as finalize_module
from app.db.batches import batches
from app.db.batches import calls as batch_calls
from app.db.batches import files as batch_files
from app.db.execution import shards
from app.db.execution.result_rows import CallRow, ResultWriter
from app.db.jobs import jobs
from app.llm.batches.gateway import BatchGateway
from app.llm.gateway import Gateway
from app.ports import UploadedBatch
from app.queue.sender import CeleryQueue
from app.services.execution.leases import LeaseKeeper
from app.services.execution.responses import Responses
from app.services.execution.result_writer import BatchWriter

OFFSET = float(os.environ.get("CLOCK_OFFSET", "0"))
PLAN = Path(os.environ["CRASH_FILE"])
IN_FLIGHT_SECONDS = 0.02  # the simulator takes longer, so that the call is on the wire then

_passages: Counter[str] = Counter()


def armed() -> bool:
    """Whether there is a plan."""
    return PLAN.exists()


def pass_by(point: str, moment: str) -> None:
    """Dies here if the plan says so."""
    try:
        plan = PLAN.read_text(encoding="ascii")
    except FileNotFoundError:
        return
    where, _, n = plan.rpartition(" ")
    if where != f"{point} {moment}":
        return
    _passages[plan] += 1
    if _passages[plan] >= int(n):
        try:
            PLAN.unlink()
        except FileNotFoundError:  # another worker was faster
            return
        os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, *points: tuple[str, str, str]) -> None:
    """Passes by points before and after a coroutine function; each is (when, point, moment)."""
    original: Callable[..., Awaitable[Any]] = getattr(owner, name)

    @functools.wraps(original)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        for when, point, moment in points:
            if when == "first":
                pass_by(point, moment)
        result = await original(*args, **kwargs)
        for when, point, moment in points:
            if when == "then":
                pass_by(point, moment)
        return result

    setattr(owner, name, wrapped)


def around_rows() -> None:
    original = BatchWriter.add

    def add(self: BatchWriter, claim: Any, *rows: Any) -> Any:
        is_call = any(isinstance(row, CallRow) for row in rows)
        if is_call:
            pass_by("row", "before")
        batch = original(self, claim, *rows)
        if is_call:
            pass_by("row", "after")
        return batch

    BatchWriter.add = add  # type: ignore[method-assign]


def around_sending() -> None:
    original = Gateway.complete

    async def complete(self: Gateway, request: Any) -> Any:
        pass_by("send", "before")
        if not armed():
            return await original(self, request)
        call = asyncio.ensure_future(original(self, request))
        await asyncio.wait({call}, timeout=IN_FLIGHT_SECONDS)
        pass_by("send", "after")
        reply = await call
        pass_by("receive", "before")
        return reply

    Gateway.complete = complete  # type: ignore[method-assign]


def around_uploading() -> None:
    original = BatchGateway.upload

    async def upload(self: BatchGateway, connection: str, file_name: str, calls: Any) -> UploadedBatch:
        pass_by("upload", "before")
        uploaded = await original(self, connection, file_name, calls)
        pass_by("upload", "after")

        async def submit(name: str) -> str:
            pass_by("create", "before")
            return await uploaded.submit(name)

        return uploaded._replace(submit=submit)

    BatchGateway.upload = upload  # type: ignore[method-assign]


def around_holding() -> None:
    original = LeaseKeeper.holding

    def holding(self: LeaseKeeper, claim: Any, stop: Any, asked: float) -> Any:
        pass_by("claim", "after")  # it is committed
        return original(self, claim, stop, asked)

    LeaseKeeper.holding = holding  # type: ignore[method-assign]


class WrongClock(datetime):
    """The time as this process sees it."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override] # a plain datetime will do
        return datetime.now(tz) + timedelta(seconds=OFFSET)


around(shards, "claim_next", ("first", "claim", "before"))
around(shards, "claim", ("first", "claim", "before"))
around_holding()
around_sending()
around(model_caller_module.ModelCaller, "call", ("then", "receive", "after"))
around_rows()
around(Responses, "_keep_reply", ("then", "follow-up", "before"))
around(ResultWriter, "write", ("first", "commit", "before"), ("then", "commit", "after"))
around(shards, "finish", ("first", "end", "before"), ("then", "end", "within"))
around(shards, "refill", ("first", "refill", "before"), ("then", "refill", "within"))
# What ended is committed and what was refilled with it too, but nobody has been told.
around(CeleryQueue, "announce_shards", ("first", "end", "after"), ("then", "refill", "after"))
around(batch_files, "begin", ("first", "file", "before"), ("then", "file", "within"))
around_uploading()
around(batch_files, "uploaded", ("first", "uploaded", "before"), ("then", "uploaded", "within"))
around(batches, "begin_submission", ("first", "begin", "before"), ("then", "begin", "within"))
around(batches, "submitted", ("first", "submit", "before"), ("then", "submit", "within"))
around(batches, "store_answers", ("first", "collect", "before"), ("then", "collect", "within"))
around(batches, "end", ("then", "collected", "within"))
around(batch_files_module, "_delete", ("first", "delete", "before"), ("then", "delete", "after"))
around(batch_calls, "replace", ("first", "exchange", "before"), ("then", "exchange", "within"))
around(jobs, "store_result", ("then", "finalize", "within"))
around(finalize_module, "finalize_job", ("first", "finalize", "before"), ("then", "finalize", "after"))
model_caller_module.datetime = WrongClock  # type: ignore[attr-defined]

from workers.celery_app import app  # noqa: E402

__all__ = ["app"]
