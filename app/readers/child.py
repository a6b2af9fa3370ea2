"""The processes that read strangers' files and draw reports: one that is ready to be copied, and its copies, which do task after task.

``python -m app.readers.child SOCKET MODULE:FUNCTION`` calls the function, and forks whenever its parent sends it one end of a socket.
It has no secret in its environment, and ends with all copies when its parent ends.
"""

import gc
import io
import json
import os
import pickle
import resource
import selectors
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from app.domain.errors import MOST_TOLD, InvalidJobError

HEAD = struct.Struct(">cI")
"""A message's kind and length."""
ENDED = struct.Struct(">ii")
"""A copy that ended: its process id and exit code, negative for a signal."""
HELLO, READ, ITEM, DONE, WRONG, FAILED, BEYOND_MEMORY = b"H", b"R", b"I", b"D", b"W", b"F", b"M"
"""Messages: a copy is ready; it needs bytes of the file; a result; all is done; the file is wrong; the reader failed; it got no memory."""
RANGE = struct.Struct(">QI")
"""The bytes that a copy needs: where they begin, and how many."""
BUFFER_BYTES = 512 * 1024
NICENESS = 5
NAME_BYTES = 200
"""Longest name of a function that prepares copies."""

Work = Callable[..., Iterator[bytes]]
"""Reads a file, or draws what is in it, and yields results; each `yield` gives the parent's answer to the result before."""


@dataclass(frozen=True, slots=True)
class Task:
    """A file to read.

    Attributes:
        work: A function of a module, called with the file and the arguments.
        arguments: Its other arguments.
        size: Bytes of the file.
        content: All of a short file; otherwise empty, and its bytes are requested.
        memory: Bytes that the task may take.
        seconds: Processor time that the task may take.
    """

    work: Work
    arguments: tuple[Any, ...]
    size: int
    content: bytes
    memory: int
    seconds: float


class _Channel:
    def __init__(self, connection: socket.socket) -> None:
        self._in, self._out = connection.makefile("rb"), connection

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self._out.sendall(HEAD.pack(kind, len(payload)) + payload)  # one write wakes the parent once

    def receive(self) -> bytes:
        """Return the parent's next message; without one, the process ends."""
        head = self._in.read(HEAD.size)
        if len(head) < HEAD.size:
            os._exit(0)
        return self._in.read(HEAD.unpack(head)[1])


class _File(io.RawIOBase):
    """A file whose bytes the parent has."""

    def __init__(self, channel: _Channel, size: int) -> None:
        self._channel, self._size, self._at = channel, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        into = memoryview(buffer).cast("B")
        wanted = min(len(into), max(0, self._size - self._at))
        if not wanted:
            return 0
        self._channel.send(READ, RANGE.pack(self._at, wanted))
        data = self._channel.receive()
        into[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Read in long pieces; the inherited one reads 8 kB at a time."""
        parts = []
        while part := self.read(BUFFER_BYTES):
            parts.append(part)
        return b"".join(parts)


def _do(task: Task, channel: _Channel) -> None:
    """Do one task and report how it ended."""
    _limit(task)
    file: BinaryIO
    file = (
        io.BytesIO(task.content)
        if task.content
        else io.BufferedReader(_File(channel, task.size), BUFFER_BYTES)
    )
    try:
        results = task.work(file, *task.arguments)
        answer: bytes | None = None
        with suppress(StopIteration):
            while True:
                item = results.send(answer)  # type: ignore[attr-defined]
                channel.send(ITEM, item)
                answer = channel.receive()
        channel.send(DONE)
    except InvalidJobError as error:
        found = [(each.pointer, each.message) for each in error.errors[:MOST_TOLD]]
        channel.send(WRONG, json.dumps(found).encode())
    except MemoryError:
        channel.send(BEYOND_MEMORY)
    except Exception as error:  # noqa: BLE001 - reported, without its words: they may be the file's
        place = traceback.extract_tb(error.__traceback__)[-1]
        channel.send(FAILED, f"{type(error).__name__} at {place.filename}:{place.lineno}".encode())


def _limit(task: Task) -> None:
    """Set the operating system's limits as a backstop to the parent's, with some room."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime + 2 * task.seconds
    _set_soft(resource.RLIMIT_CPU, int(seconds) + 1)
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        data = next(line for line in lines if line.startswith("VmData:"))
        _set_soft(resource.RLIMIT_DATA, int(data.split()[1]) * 1024 + 3 * task.memory // 2)


def _set_soft(kind: int, limit: int) -> None:
    hard = resource.getrlimit(kind)[1]
    resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _serve(connection: socket.socket) -> NoReturn:
    channel = _Channel(connection)
    channel.send(HELLO, str(os.getpid()).encode())
    while True:
        _do(pickle.loads(channel.receive()), channel)  # noqa: S301 - our own parent packed it


def _fork_on_request(parent: socket.socket) -> None:
    """Fork for each socket that the parent sends, prepared as it says, and report each copy that ended; return when the parent has ended."""
    woken, wake = socket.socketpair()
    for each in (woken, wake):
        each.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    selector = selectors.DefaultSelector()
    selector.register(parent, selectors.EVENT_READ)
    selector.register(woken, selectors.EVENT_READ)
    while True:
        ready = {key.fileobj for key, _ in selector.select()}
        if woken in ready:
            woken.recv(4096)
            _report_ended(parent)
        if parent not in ready:
            continue
        request, sockets, *_ = socket.recv_fds(parent, NAME_BYTES, 1)
        if not request:
            return
        try:
            _prepare(request.decode())
        except Exception:  # noqa: BLE001 - the copy's task imports again and reports it; other tasks go on
            traceback.print_exc()
        if os.fork() == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            selector.close()
            for each in (parent, woken, wake):
                each.close()
            _serve(socket.socket(fileno=sockets[0]))
        os.close(sockets[0])


def _report_ended(parent: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with suppress(BrokenPipeError):
                parent.send(ENDED.pack(ended[0], os.waitstatus_to_exitcode(ended[1])))


@cache
def _prepare(name: str) -> None:
    """Call a function, ``module:function``, once; what it loads is shared with later copies."""
    module, _, function = name.partition(":")
    getattr(import_module(module), function)()
    gc.freeze()


def main() -> None:
    """Prepare, then fork until the parent ends."""
    parent = socket.socket(fileno=int(sys.argv[1]))
    os.nice(NICENESS)
    _prepare(sys.argv[2])
    try:
        _fork_on_request(parent)
    finally:
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
