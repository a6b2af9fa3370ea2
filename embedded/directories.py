"""Where the embedded servers' files are: their wheels, their sockets, and the lock on a data directory."""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from embedded.process import RunAs, StackError

SOCKET_PREFIX = "assay-"
SECRET_BYTES = 32
LONGEST_BASE = 60  # a unix socket's whole path must stay below 104 bytes on macOS, 108 on Linux


def wheel_directory(package: str, instead: str) -> Path:
    """The directory of an installed package, found without importing it.

    Args:
        package: the import name.
        instead: the setting that makes it unnecessary, for the error message.

    Raises:
        StackError: it is not installed (there is none for Windows).
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise StackError(
            f"the package {package} is not installed on this machine; install it or set {instead}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def make_directory(path: Path, mode: int = 0o700) -> Path:
    """Makes a directory (with `mode`) unless it exists.

    Raises:
        StackError: it cannot be made.
    """
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(f"cannot use the directory {path}: {error}") from error
    return path


def make_secret(path: Path) -> Path:
    """A file with a secret in hexadecimal that only this account can read; one that exists stays as it is.

    Args:
        path: in an existing directory; of several processes that make it at once, one does.

    Raises:
        StackError: it cannot be made.
    """
    whole = path.with_name(f"{path.name}.{os.getpid()}")  # nobody finds a file that is not written yet
    try:
        if path.exists():
            return path
        whole.unlink(missing_ok=True)
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())  # what is hashed or encrypted with it outlives the machine's crash
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(whole)
        whole.unlink()
    except OSError as error:
        raise StackError(f"cannot make {path}: {error}") from error
    return path


class DirectoryLock:
    """The right to be the only process that uses a directory; the kernel takes it back when the process ends.

    Args:
        directory: an existing directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: int | None = None

    def acquire(self) -> None:
        """Takes the lock.

        Raises:
            StackError: another process has it (its pid is named), or the directory cannot be written.
        """
        try:
            file = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StackError(f"cannot use the directory {self._directory}: {error}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, 20, 0).decode().strip()
            os.close(file)
            raise StackError(
                f"{self._directory} is in use by process {holder}: stop it, or use another directory"
            ) from None
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file

    def release(self) -> None:
        """Gives the lock back; harmless without it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class SocketDirectory:
    """A short-named 0700 directory for a server's unix socket, linked as `<data_dir>/sockets`.

    The link lets the next start remove what a killed supervisor left behind.

    Args:
        data_dir: the server's directory, locked by the caller.
        run_as: whose the socket directory is.
    """

    def __init__(self, data_dir: Path, run_as: RunAs) -> None:
        self._link = data_dir / "sockets"
        self._base = _short_base()
        self._remove_leftover()
        self.path = Path(tempfile.mkdtemp(prefix=SOCKET_PREFIX, dir=self._base))
        os.chown(self.path, *run_as.owner)
        self._link.symlink_to(self.path)

    def remove(self) -> None:
        """Removes the directory and the link to it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._link.unlink(missing_ok=True)

    def _remove_leftover(self) -> None:
        if self._link.is_symlink():
            leftover = self._link.readlink()
            if leftover.parent == self._base and leftover.name.startswith(SOCKET_PREFIX):
                shutil.rmtree(leftover, ignore_errors=True)
            self._link.unlink()


def _short_base() -> Path:
    base = tempfile.gettempdir()
    return Path(base if len(base) <= LONGEST_BASE else "/tmp")  # noqa: S108 - mkdtemp makes a private directory in it
