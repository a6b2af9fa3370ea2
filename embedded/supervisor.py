"""Runs the whole stack as children of this process: brings it up, keeps it up, takes it down."""

import errno
import http.client
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Self

from embedded.directories import DirectoryLock, make_directory, make_secret
from embedded.postgres import EmbeddedPostgres
from embedded.process import ManagedProcess, StackError
from embedded.server import EmbeddedServer
from embedded.services import (
    Services,
    ServiceSpec,
    StackConfig,
    StackUrls,
    migration_command,
    service_commands,
)
from embedded.valkey import EmbeddedValkey

KEYS_FILE = "encryption-keys"
"""In the data directory: what the keys of connections are encrypted with, unless a setting says otherwise."""

READY_SECONDS = 300.0  # a busy machine takes minutes to import all that the API and a worker need
READY_REQUEST_SECONDS = 5.0
STARTING_POLL_SECONDS = 0.05
WATCH_SECONDS = 0.25
FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 10.0
STEADY_SECONDS = 30.0  # a part that lived this long starts its back-off anew

_NO_WORKER = '"none is ready"'
"""In the answer of an API that serves, but whose jobs would wait."""

log = logging.getLogger(__name__)


class StoppedEarlyError(StackError):
    """The stack was asked to stop before it was ready."""


class Supervisor:
    """The stack of one data directory: databases, migrations, API, workers, sweeper, simulator; started once.

    One thread starts, watches and stops all children, because the kernel ties a child's life to the thread that started
    it. When this process dies, by whatever signal, so do they.

    Until the stack is ready, a part that dies is an error; from then on it is started again.

    Args:
        config: what to run, and where.
        services: the services' commands.
        migration: the command that prepares the database.
    """

    def __init__(
        self,
        config: StackConfig,
        *,
        services: Services = service_commands,
        migration: Callable[[StackConfig], tuple[str, ...]] = migration_command,
    ) -> None:
        self._config = config
        self._services = services
        self._migration = migration
        self._logs = config.data_dir / "logs"
        self._urls: StackUrls | None = None
        self._parts: list[_Part] = []
        self._failure: BaseException | None = None
        self._stop_requested = threading.Event()
        self._ready_or_ended = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="supervisor", daemon=True)

    @property
    def urls(self) -> StackUrls:
        """Where the parts of the stack are, once the databases run."""
        if self._urls is None:
            raise StackError("the stack has not been started")
        return self._urls

    def pids(self) -> dict[str, int]:
        """The pids of the parts that are alive, by name."""
        pids = {part.process.name: part.process.pid for part in self._parts}
        return {name: pid for name, pid in pids.items() if pid is not None}

    def start(self) -> str:
        """Brings the stack up.

        Returns:
            The API's URL, once its `/readyz` answers 200; without workers, its `/healthz`.

        Raises:
            StackError: the data directory or the port is in use, or a part cannot run; nothing is left running then.
        """
        self._thread.start()
        try:
            self._ready_or_ended.wait()
        except BaseException:
            self.stop()
            raise
        if self._failure is not None:
            raise self._failure
        return self.urls.api

    def wait(self) -> None:
        """Waits until the started stack has been stopped.

        Raises:
            BaseException: what ended it, if not a call of `stop`.
        """
        self._ended.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stops the stack: API, sweeper and workers, then the simulator, the databases last. Harmless if it is not running."""
        self._stop_requested.set()
        if self._thread.is_alive():
            self._ended.wait()

    def run(self, on_ready: Callable[[str], None]) -> None:
        """Runs the stack until SIGINT or SIGTERM; only from the main thread.

        Args:
            on_ready: is given the API's URL.

        Raises:
            StackError: as `start`.
        """
        with _on_signals(self._stop_requested.set), suppress(StoppedEarlyError):
            try:
                on_ready(self.start())
                self.wait()
            finally:
                self.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _supervise(self) -> None:
        try:
            with ExitStack() as cleanup:
                self._bring_up(cleanup)
                self._ready_or_ended.set()
                while not self._stop_requested.wait(WATCH_SECONDS):
                    for part in self._parts:
                        part.tend()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._failure = error
        finally:
            self._ready_or_ended.set()
            self._ended.set()

    def _bring_up(self, cleanup: ExitStack) -> None:
        """Starts everything; `cleanup` takes it down again in the opposite order."""
        config = self._config
        make_directory(config.data_dir, mode=0o711)  # passable: Postgres may have to run as another account
        make_directory(self._logs)
        lock = DirectoryLock(config.data_dir)
        lock.acquire()
        cleanup.callback(lock.release)

        port = free_port(config.host, config.port)  # before the databases: a taken port is known at once
        databases: list[EmbeddedServer] = []
        database_url, redis_url = config.database_url, config.redis_url
        if database_url is None:
            postgres = EmbeddedPostgres(config.data_dir / "postgres", log=self._logs / "postgres.log")
            databases.append(self._spawned(postgres, cleanup))
            database_url = postgres.url()
        if redis_url is None:
            valkey = EmbeddedValkey(config.data_dir / "valkey", log=self._logs / "valkey.log")
            databases.append(self._spawned(valkey, cleanup))
            redis_url = valkey.url()
        self._urls = StackUrls(
            host=config.host,
            port=port,
            database=database_url,
            redis=redis_url,
            simulator_port=free_port("127.0.0.1", 0) if config.simulator else None,
            encryption_keys_file=None
            if config.encryption_keys_set
            else config.encryption_keys_file or make_secret(config.data_dir / KEYS_FILE),
            config_file=config.config_file,
        )
        specs = self._services(config, self._urls)
        for needs_database in (False, True):
            early = [
                spec for spec in specs if not spec.needs_tables and spec.needs_database is needs_database
            ]
            self._spawn(early, cleanup)
        for database in databases:
            database.wait_ready()
        self._migrate(cleanup)
        self._spawn([spec for spec in specs if spec.needs_tables], cleanup)
        self._await_ready()

    def _spawned(self, server: EmbeddedServer, cleanup: ExitStack) -> EmbeddedServer:
        cleanup.callback(server.stop)
        server.spawn()
        self._parts.append(_Part(server.process, server.restart))
        return server

    def _spawn(self, specs: list[ServiceSpec], cleanup: ExitStack) -> None:
        processes = [self._service(spec) for spec in specs]
        cleanup.callback(_stop_together, processes)
        for process in processes:
            process.spawn()
            self._parts.append(_Part(process, process.spawn))

    def _service(self, spec: ServiceSpec) -> ManagedProcess:
        return ManagedProcess(
            spec.name,
            spec.argv,
            log=self._logs / f"{spec.name}.log",
            env={**self.urls.environment(), **spec.env},
            grace=spec.grace,
            niceness=spec.niceness,
        )

    def _migrate(self, cleanup: ExitStack) -> None:
        owner = {"ASSAY_OWNER_DATABASE_URL": self._config.owner_database_url or ""}
        migration = self._service(ServiceSpec("migrations", self._migration(self._config), env=owner))
        cleanup.callback(migration.stop)
        migration.spawn()
        while migration.running:
            self._pause()
        if migration.exit_status != 0:
            raise StackError(migration.failure())

    def _await_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        path = "/readyz" if self._config.workers else "/healthz"  # without workers no job would run
        while (answer := _readiness(self.urls, path)) is not None:
            if time.monotonic() > deadline:
                raise StackError(
                    f"the service was not ready within {READY_SECONDS:g} s: {answer}. Logs are in {self._logs}"
                )
            self._pause()

    def _pause(self) -> None:
        """Lets a little time pass while the stack comes up, in which nothing may die."""
        if self._stop_requested.wait(STARTING_POLL_SECONDS):
            raise StoppedEarlyError("stopped before the stack was ready")
        for part in self._parts:
            if not part.process.running:
                raise StackError(part.process.failure())


class _Part:
    """A part of the running stack that is started again when it dies, ever later if it does so soon.

    Args:
        process: the part's running process.
        revive: starts it again.
    """

    def __init__(self, process: ManagedProcess, revive: Callable[[], None]) -> None:
        self.process = process
        self._revive = revive
        self._started = time.monotonic()
        self._next_start: float | None = None
        self._backoff = FIRST_BACKOFF_SECONDS

    def tend(self) -> None:
        if self.process.running:
            return
        now = time.monotonic()
        if self._next_start is None:
            if now - self._started > STEADY_SECONDS:
                self._backoff = FIRST_BACKOFF_SECONDS
            self._next_start = now + self._backoff
            log.warning("%s\nIt is started again in %.1f s.", self.process.failure(), self._backoff)
            self._backoff = min(2 * self._backoff, LONGEST_BACKOFF_SECONDS)
        elif now >= self._next_start:
            self._started, self._next_start = now, None
            try:
                self._revive()
            except StackError as error:
                log.error("%s could not be started again: %s", self.process.name, error)  # noqa: TRY400 - says all


def free_port(host: str, port: int) -> int:
    """Find a port for a server that is started later, and keep it from all others until this process ends.

    On Linux the port stays bound by a socket that does not listen: no other program is given it, and a server that sets
    ``SO_REUSEADDR``, as all do, listens on it. Elsewhere another program may take the port before the server starts.

    Args:
        host: Address.
        port: Port, or 0 for any that is free.

    Raises:
        StackError: If the port is taken, or this machine cannot listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    holder = socket.socket(family)
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((host, port))
    except OSError as error:
        holder.close()
        if error.errno == errno.EADDRINUSE:
            raise StackError(
                f"port {port} on {host} is taken by another program: choose another port"
            ) from error
        raise StackError(f"cannot listen on {host}, port {port}: {error}") from error
    found = int(holder.getsockname()[1])
    if sys.platform == "linux":
        holder.detach()  # it stays open
    else:
        holder.close()
    return found


def _readiness(urls: StackUrls, path: str) -> str | None:
    """Why the API does not answer 200 at a path; None if it does."""
    connection = http.client.HTTPConnection(urls.client_host, urls.port, timeout=READY_REQUEST_SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return str(error)
    finally:
        connection.close()
    is_ready = response.status == http.HTTPStatus.OK and _NO_WORKER not in body
    return None if is_ready else f"{response.status} {body}"


def _stop_together(processes: list[ManagedProcess]) -> None:
    for process in processes:
        process.request_stop()
    for process in processes:
        process.stop()


@contextmanager
def _on_signals(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` on SIGINT, SIGTERM and SIGHUP (a closed terminal) instead of ending this process; `nohup` still ignores SIGHUP."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    wanted = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    earlier = {number: signal.signal(number, lambda *_: act()) for number in wanted}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
