"""Reads strangers' files and draws reports in child processes, with bounds on time and memory and places for each tenant."""

import asyncio
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import structlog

from app import clock
from app.domain.errors import FieldError, InvalidJobError
from app.readers import child
from app.readers.child import BUFFER_BYTES, HEAD, RANGE, Task, Work
from app.telemetry.metrics import READER_ENDS

log = structlog.get_logger(__name__)

T = TypeVar("T")

SHORT_BYTES = 64 * 1024
"""A file of so many bytes goes to the child with its task."""
SMALL_BYTES = 8 * 1024 * 1024
"""A file of more bytes is large."""
IDLE_SECONDS = 5.0
"""A child that draws ends when it has been idle for so long."""
ALL_MEMORY = 288 * 1024 * 1024
"""Bytes that all that read files may take; beyond it the largest is ended, and tried again."""
KEPT_MEMORY = 32 * 1024 * 1024
"""A child that has grown by more ends after its task."""
CPU_SECONDS, BYTES_A_SECOND = 90.0, 25_000
"""Processor time for any file, and how much more longer ones get."""
WALL_FACTOR = 5
"""Time that a task may take, in processor time: children have a low priority."""
LOOK_SECONDS = 0.02
START_SECONDS = 60.0
MOST_MESSAGE = 256 * 1024 * 1024
CRASHED = "can't be read: it ended the process that reads it, twice"
FAILED = "can't be read: its reader failed; the service's log has the place"
LOST = "the process that read the file was ended; try again"
FOLDER = Path(__file__).parents[2]
VARIABLES = {
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""With the given folders all that children have of an environment: settings hold secrets. One thread, so that the process can be
copied, and the system's allocator, which gives memory back."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task.

    Attributes:
        places: Tasks at a time.
        memory: Bytes of memory that a task may take.
        growth: Bytes more for each byte of the task's file.
        drawing: Name of a function, ``module:function``, that imports what draws; empty for tasks that read files. Children that draw
            never read a stranger's file.
    """

    places: int
    memory: int
    growth: int = 0
    drawing: str = ""


SMALL = Kind(2, 120 * 1024 * 1024)
"""Reads a file of at most :data:`SMALL_BYTES`."""
LARGE = Kind(1, 240 * 1024 * 1024)


class Source(Protocol):
    """A file's bytes, wherever they are."""

    @property
    def size(self) -> int:
        """How many there are."""
        ...

    async def read_at(self, place: int, size: int) -> bytes:
        """Return bytes from a place on."""
        ...


class BytesSource:
    """A file in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    async def read_at(self, place: int, size: int) -> bytes:
        """Return bytes from a place on."""
        return self._data[place : place + size]


class ReaderCrashError(Exception):
    """A file ended its reader."""


class ReaderLostError(Exception):
    """Something else ended a reader."""


class _EndedError(Exception):
    """A reader ended."""


class _WrongFileError(Exception):
    """A reader refused its file; the reader goes on."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__()
        self.errors = errors


class BeyondLimitError(InvalidJobError):
    """A file that its reader can't read within its limits."""

    def __init__(self, limit: str, words: str) -> None:
        super().__init__([FieldError("", words)])
        self.limit = limit


class _Child:
    """A child process."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        pid: int,
        ended: asyncio.Future[int],
    ) -> None:
        self._reader, self._writer = reader, writer
        self._pid = pid
        self._ended = ended
        self._memory = _resident(pid)

    async def send(self, payload: bytes) -> None:
        self._writer.write(HEAD.pack(b" ", len(payload)) + payload)  # one write wakes the child once
        await self._writer.drain()

    async def receive(self) -> tuple[bytes, bytes]:
        kind, length = HEAD.unpack(await self._reader.readexactly(HEAD.size))
        if length > MOST_MESSAGE:
            raise ConnectionError
        return kind, await self._reader.readexactly(length)

    def memory(self) -> int:
        """Bytes of memory by which it has grown since it started."""
        return _resident(self._pid) - self._memory

    def seconds(self) -> float:
        """Processor time that it has taken."""
        return _processor_seconds(self._pid)

    def has_ended(self) -> bool:
        return self._ended.done()

    async def exit_code(self) -> int | None:
        """Return its exit code when it has ended, negative for a signal; ``None`` if it is not known."""
        await asyncio.wait({self._ended}, timeout=START_SECONDS)
        known = self._ended.done() and not self._ended.cancelled()
        return self._ended.result() if known else None

    async def closed(self) -> None:
        with suppress(OSError):
            await self._writer.wait_closed()

    def end(self) -> None:
        if not self._ended.done():
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self._writer.close()


def _resident(pid: int) -> int:
    """Return the bytes of memory of a process; 0 where the system does not show them."""
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _processor_seconds(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return 0.0


class ReaderPool:
    """Child processes that read files and draw, each one task at a time.

    Args:
        prepare: Name of a function, ``module:function``, that imports and loads what all children need.
        on_end: Called with the tenant and the limit when a file exceeds a limit of its reader or crashes it.
        folders: Variables that name the folders of libraries' caches.
    """

    def __init__(
        self,
        prepare: str,
        on_end: Callable[[str, str], Awaitable[None]] | None = None,
        folders: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._prepare = prepare
        self._folders = folders
        self._on_end = on_end
        self._idle: defaultdict[str, dict[_Child, asyncio.TimerHandle | None]] = defaultdict(dict)
        self._origin: _Origin | None = None
        self._starting = asyncio.Lock()
        self._tenants: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._places: dict[Kind, asyncio.Semaphore] = {}
        self._running: set[_Child] = set()

    async def start(self) -> None:
        """Start the process that the children are copies of, unless it runs."""
        async with self._starting:
            if self._origin is not None and self._origin.has_ended():
                await self._origin.close()
                self._origin = None
            self._origin = self._origin or _Origin(self._prepare, self._folders)

    async def close(self) -> None:
        """End all processes."""
        for drawing in list(self._idle):
            while one := self._idle_child(drawing):
                one.end()
                await one.closed()
        if self._origin is not None:
            await self._origin.close()

    async def whole(
        self, tenant: str, source: Source, work: Work, *arguments: Any, kind: Kind | None = None
    ) -> bytes:
        """Return all results of a reader.

        Raises:
            InvalidJobError: If the file is wrong, exceeds a limit, or ends its reader twice.
            ReaderLostError: If something else ended two readers.
        """

        async def once() -> bytes:
            async with aclosing(self.run(tenant, source, work, *arguments, kind=kind)) as results:
                return b"".join([each async for each in results])

        return await twice(once)

    async def run(
        self, tenant: str, source: Source, work: Work, *arguments: Any, kind: Kind | None = None
    ) -> AsyncGenerator[bytes, bytes | None]:
        """Yield the results of a reader as it gives them. The bytes sent for a result are what its `yield` returns.

        Closing the generator ends the reader. A tenant's files are read one after the other; whoever draws gives tenants turns.

        Args:
            tenant: The tenant.
            source: The file.
            work: Reads it.
            *arguments: Its other arguments.
            kind: Its kind, by default that of the file's size.

        Raises:
            InvalidJobError: If the file is wrong or exceeds a limit.
            ReaderCrashError: If it ends the reader.
            ReaderLostError: If something else ends the reader.
        """
        kind = kind or (LARGE if source.size > SMALL_BYTES else SMALL)
        seconds = CPU_SECONDS + source.size / BYTES_A_SECOND
        async with self._place(tenant, kind):
            content = await source.read_at(0, source.size) if source.size <= SHORT_BYTES else b""
            memory = kind.memory + kind.growth * source.size
            task = Task(work, arguments, source.size, content, memory, seconds)
            one, reusable = await self._child(kind.drawing), False
            running = set() if kind.drawing else self._running
            running.add(one)
            try:
                async with aclosing(_results(_Allowance(one, task, running), source)) as results:
                    answer = None
                    with suppress(StopAsyncIteration):
                        while True:
                            answer = yield await results.asend(answer)
                reusable = True
            except _WrongFileError as error:
                reusable = True
                raise InvalidJobError(error.errors) from error
            except BeyondLimitError as error:
                one.end()  # before anything is awaited: nobody watches it any more
                await self._report(tenant, kind, error.limit)
                raise
            except _EndedError as error:
                cause = await _cause(one)
                if isinstance(cause, ReaderCrashError):
                    await self._report(tenant, kind, "crash")
                raise cause from error
            finally:
                running.discard(one)
                if reusable and one.memory() <= KEPT_MEMORY:
                    self._keep(one, kind.drawing)
                else:
                    one.end()

    @asynccontextmanager
    async def _place(self, tenant: str, kind: Kind) -> AsyncIterator[None]:
        places = self._places.setdefault(kind, asyncio.Semaphore(kind.places))
        turn: AbstractAsyncContextManager[None] = nullcontext()
        if not kind.drawing:
            turn = self._tenants.setdefault(tenant, asyncio.Lock())
        async with turn, places:
            yield

    async def _report(self, tenant: str, kind: Kind, limit: str) -> None:
        READER_ENDS.labels(limit).inc()
        if self._on_end is not None and not kind.drawing:
            await self._on_end(tenant, limit)

    def _keep(self, one: _Child, drawing: str) -> None:
        loop = asyncio.get_running_loop()
        end = loop.call_later(IDLE_SECONDS, self._end_idle, one, drawing) if drawing else None
        self._idle[drawing][one] = end

    def _end_idle(self, one: _Child, drawing: str) -> None:
        del self._idle[drawing][one]
        one.end()

    def _idle_child(self, drawing: str) -> _Child | None:
        if not self._idle[drawing]:
            return None
        one, end = self._idle[drawing].popitem()
        if end is not None:
            end.cancel()
        return one

    async def _child(self, drawing: str) -> _Child:
        while one := self._idle_child(drawing):
            if not one.has_ended():
                return one
            one.end()
        with suppress(OSError, EOFError, TimeoutError):  # the process that is copied has just ended
            return await self._copy(drawing)
        try:
            return await self._copy(drawing)
        except (OSError, EOFError, TimeoutError) as error:
            raise ReaderLostError(LOST) from error

    async def _copy(self, drawing: str) -> _Child:
        await self.start()
        assert self._origin is not None  # noqa: S101 - it has started
        try:
            return await self._origin.copy(drawing or self._prepare)
        except (OSError, EOFError, TimeoutError):
            await self._origin.close()
            raise


async def twice(read: Callable[[], Awaitable[T]]) -> T:
    """Read a file, once more if its reader ends.

    Raises:
        InvalidJobError: If it crashes a second reader.
        ReaderLostError: If something else ends the second one.
    """
    with suppress(ReaderCrashError, ReaderLostError):
        return await read()
    try:
        return await read()
    except ReaderCrashError as error:
        raise BeyondLimitError("crash", CRASHED) from error


async def _cause(one: _Child) -> Exception:
    """Tell a crash from a reader that something else ended."""
    code = await one.exit_code()
    lost = code in {None, -signal.SIGKILL}
    log.warning("a reader ended while it read a file", exit_code=code)
    if lost:
        READER_ENDS.labels("lost").inc()
    return ReaderLostError(LOST) if lost else ReaderCrashError()


async def _results(allowance: "_Allowance", source: Source) -> AsyncGenerator[bytes, bytes | None]:
    one, task = allowance.child, allowance.task
    try:
        await one.send(pickle.dumps(task))
        while True:
            kind, payload = await allowance.message()
            if kind == child.READ:
                await one.send(await source.read_at(*RANGE.unpack(payload)))
            elif kind == child.ITEM:
                answer = yield payload
                await one.send(answer or b"")
            elif kind == child.WRONG:
                raise _WrongFileError([FieldError(*each) for each in json.loads(payload)])
            elif kind == child.BEYOND_MEMORY:
                raise _beyond_memory(task)
            elif kind == child.FAILED:
                log.error("a reader failed", error=payload.decode(errors="replace"))
                raise BeyondLimitError("failure", FAILED)
            else:
                return
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise _EndedError from error


class _Allowance:
    """What is left of a task's time and memory."""

    def __init__(self, one: _Child, task: Task, running: Collection[_Child]) -> None:
        self.child, self.task = one, task
        self._running = running
        self._begun, self._waited = one.seconds(), 0.0

    async def message(self) -> tuple[bytes, bytes]:
        """Return the reader's next message.

        Raises:
            InvalidJobError: If it exceeds a limit meanwhile.
        """
        receiving, begun = asyncio.ensure_future(self.child.receive()), clock.monotonic()
        try:
            while not (await asyncio.wait({receiving}, timeout=LOOK_SECONDS))[0]:
                self._check(self._waited + clock.monotonic() - begun)
            return receiving.result()
        finally:
            self._waited += clock.monotonic() - begun
            receiving.cancel()

    def _check(self, waited: float) -> None:
        task, memory = self.task, self.child.memory()
        if memory > task.memory:
            raise _beyond_memory(task)
        others = [each.memory() for each in self._running if each is not self.child]
        if others and memory + sum(others) > ALL_MEMORY and memory >= max(others):
            READER_ENDS.labels("lost").inc()
            raise ReaderLostError(LOST)
        if self.child.seconds() - self._begun > task.seconds:
            raise _beyond("time", f"takes more than {task.seconds:.0f} s of processor time to read")
        if waited > WALL_FACTOR * task.seconds:
            raise _beyond("time", f"takes more than {WALL_FACTOR * task.seconds:.0f} s to read")


def _beyond_memory(task: Task) -> BeyondLimitError:
    return _beyond("memory", f"takes more than {task.memory // 2**20} MiB of memory to read")


def _beyond(limit: str, words: str) -> BeyondLimitError:
    return BeyondLimitError(limit, f"{words}; divide the file")


class _Origin:
    """The process that the children are copies of."""

    def __init__(self, prepare: str, folders: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-P", "-m", "app.readers.child", str(theirs.fileno()), prepare]
        self._process = subprocess.Popen(  # noqa: S603 - our own
            command,
            # Where the service is installed, only its own processes find this folder.
            env={**VARIABLES, **folders, "PYTHONPATH": str(FOLDER)},
            cwd=FOLDER,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._channel.setblocking(False)
        self._codes: dict[int, asyncio.Future[int]] = {}
        self._reports = asyncio.create_task(self._take_reports())

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    async def copy(self, prepare: str) -> _Child:
        """Return a new child, after this function was called.

        Raises:
            Exception: If there is none soon.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self._channel, [prepare.encode()], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        reader, writer = await asyncio.open_connection(sock=ours, limit=BUFFER_BYTES)
        try:
            async with asyncio.timeout(START_SECONDS):
                _, length = HEAD.unpack(await reader.readexactly(HEAD.size))
                pid = int(await reader.readexactly(length))
        except BaseException:
            writer.close()
            raise
        self._codes[pid] = asyncio.get_running_loop().create_future()
        return _Child(reader, writer, pid, self._codes[pid])

    async def close(self) -> None:
        """End the process and its copies, which end with it."""
        self._reports.cancel()
        await asyncio.gather(self._reports, return_exceptions=True)
        self._channel.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)

    async def _take_reports(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while report := await loop.sock_recv(self._channel, child.ENDED.size):
                pid, code = child.ENDED.unpack(report)
                if pid in self._codes:
                    self._codes.pop(pid).set_result(code)
        for each in self._codes.values():
            each.cancel()
        await asyncio.to_thread(self._process.wait)
