"""What the embedded servers have in common: a locked directory, a short one for sockets, one process."""

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from embedded.directories import DirectoryLock, SocketDirectory, make_directory
from embedded.process import ManagedProcess, StackError


class EmbeddedServer(ABC):
    """A server of our own as a child process; entering starts it, leaving stops it.

    Args:
        data_dir: where it keeps everything; one process at a time may use it.
    """

    name: ClassVar[str]
    start_seconds: ClassVar[float]

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.absolute()
        self._lock = DirectoryLock(self._data_dir)
        self._sockets: SocketDirectory | None = None
        self._process: ManagedProcess | None = None

    @property
    def process(self) -> ManagedProcess:
        """The server's process; there is one between `start` and `stop`."""
        if self._process is None:
            raise self._not_started()
        return self._process

    @property
    def sockets(self) -> Path:
        """The directory of the started server's sockets."""
        if self._sockets is None:
            raise self._not_started()
        return self._sockets.path

    def start(self) -> None:
        """Starts the server and waits until it answers.

        Raises:
            StackError: another process uses the directory, or the server can't be started; nothing is left running
                then.
        """
        self.spawn()
        self.wait_ready()

    def spawn(self) -> None:
        """Starts the server, whose address is known from then on, without waiting until it answers.

        Raises:
            StackError: as `start`.
        """
        make_directory(self._data_dir)
        self._lock.acquire()
        try:
            self._process = self._prepare()
            self._clear_leftovers()
            self._process.spawn()
        except BaseException:
            self.stop()
            raise

    def wait_ready(self) -> None:
        """Waits until the server answers.

        Raises:
            StackError: it doesn't; nothing is left running then.
        """
        try:
            self.process.wait_ready(self.start_seconds)
        except BaseException:
            self.stop()
            raise

    def restart(self) -> None:
        """Starts the server again, at the same address, after it has died.

        Raises:
            StackError: it fails.
        """
        self._clear_leftovers()
        self.process.start(self.start_seconds)

    def stop(self) -> None:
        """Shuts the server down in order. Harmless if it is not running."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._sockets is not None:
            self._sockets.remove()
            self._sockets = None
        self._lock.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _prepare(self) -> ManagedProcess:
        """Makes what the server needs, its directory of sockets first of all, and describes its process."""

    def _clear_leftovers(self) -> None:  # noqa: B027 - most servers leave nothing that is in the way
        """Removes what a server that was killed has left."""

    def _not_started(self) -> StackError:
        return StackError(f"{self.name} has not been started")
