"""What `assay up` runs besides the databases: each service's command, as data."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up, not bound to


NUMERICS = {"OPENBLAS_NUM_THREADS": "1"}
"""The intervals' matrices are small: several threads for one only wait for each other, seven times as long on a busy machine."""
WORKER_NICENESS = 5  # the API starts before them, and answers polls while they fill the machine
WORKER_GRACE = 10.0
WORKER_SHUTDOWN = "6"  # of it, the seconds for calls on the wire; the rest is for writing what there is


@dataclass(frozen=True)
class StackConfig:
    """What to run, and where.

    Attributes:
        host: the address that the API listens on.
        port: its port, 0 for any free one.
        data_dir: where everything that stays is kept, with `logs/`.
        workers: the number of worker processes.
        slots: shards that one worker process runs at once, all on its one event loop.
        database_url: a Postgres to use (SQLAlchemy URL); None starts one.
        redis_url: a Redis or Valkey to use; None starts one.
        encryption_keys_file: what the keys of connections are encrypted with; None makes one in `data_dir`.
        encryption_keys_set: whether ASSAY_ENCRYPTION_KEYS in the environment holds these keys; then no file is used.
        simulator: whether to run the simulated provider.
        simulator_args: what its command line says besides its address.
        key_pepper_file: what the API hashes its keys with.
        owner_database_url: as whom the migrations connect to that database, if not by its URL.
        config_file: the operator's file; None for that of the environment, if any.
    """

    host: str
    port: int
    data_dir: Path
    workers: int
    slots: int = 24
    database_url: str | None = None
    redis_url: str | None = None
    encryption_keys_file: Path | None = None
    encryption_keys_set: bool = False
    simulator: bool = True
    simulator_args: tuple[str, ...] = ()
    key_pepper_file: Path | None = None
    owner_database_url: str | None = None
    config_file: Path | None = None


@dataclass(frozen=True)
class StackUrls:
    """Where the parts of a stack are.

    Attributes:
        host: the address that the API listens on.
        port: the API's port.
        database: SQLAlchemy URL.
        redis: redis-py URL.
        simulator_port: the simulator's port on 127.0.0.1; None without a simulator.
        encryption_keys_file: what the keys of connections are encrypted with; None without such.
        config_file: the operator's file; None for that of the environment, if any.
    """

    host: str
    port: int
    database: str
    redis: str
    simulator_port: int | None = None
    encryption_keys_file: Path | None = None
    config_file: Path | None = None

    @property
    def client_host(self) -> str:
        """The address under which a client on this machine reaches the API."""
        return LOOPBACK.get(self.host, self.host)

    @property
    def api(self) -> str:
        """The API's URL for a client on this machine."""
        host = f"[{self.client_host}]" if ":" in self.client_host else self.client_host
        return f"http://{host}:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables by which every service finds the others."""
        # Whatever files the operator named them in have been read by now, and a service takes one of the two only.
        variables = {"DATABASE_URL": self.database, "DATABASE_URL_FILE": ""}
        variables |= {"REDIS_URL": self.redis, "REDIS_URL_FILE": ""}
        # The migrations alone need it, and it may be that of another database than this stack's.
        variables |= {"ASSAY_OWNER_DATABASE_URL": "", "ASSAY_OWNER_DATABASE_URL_FILE": ""}
        if self.simulator_port is not None:
            variables["ASSAY_SIMULATOR_URL"] = f"http://127.0.0.1:{self.simulator_port}"
        if self.encryption_keys_file is not None:
            variables["ASSAY_ENCRYPTION_KEYS_FILE"] = str(self.encryption_keys_file)
        if self.config_file is not None:
            variables["ASSAY_CONFIG"] = str(self.config_file)
        return variables


@dataclass(frozen=True)
class ServiceSpec:
    """One service.

    Attributes:
        name: unique in the stack; also its log's name.
        argv: its command; the first word is a path.
        needs_database: whether it stops before those that do not. The databases' addresses are known to all.
        needs_tables: whether it starts after the migrations. One that does not starts before the databases answer, and says itself that it
            is not ready before.
        grace: seconds that it may take to stop.
        env: variables of its own.
        niceness: how far it lets others go before it, 0 to 19.
    """

    name: str
    argv: tuple[str, ...]
    needs_database: bool = True
    needs_tables: bool = True
    grace: float = 10.0
    env: dict[str, str] = field(default_factory=dict)
    niceness: int = 0


Services = Callable[[StackConfig, StackUrls], list[ServiceSpec]]


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs an installed module with this interpreter, whatever lies in the working directory."""
    return (sys.executable, "-P", "-m", module, *arguments)


def migration_command(_: StackConfig) -> tuple[str, ...]:
    """The command that brings the database's schema up to date."""
    return module_command("app.cli", "migrate")


def service_commands(config: StackConfig, urls: StackUrls) -> list[ServiceSpec]:
    """The services of the stack: API, workers, sweeper, and the simulator if it is wanted."""
    file = config.key_pepper_file
    pepper = {} if file is None else {"ASSAY_KEY_PEPPER_FILE": str(file)}
    specs = [
        ServiceSpec(
            "api",
            module_command(
                *(
                    "app.serve",
                    "--factory",
                    "app.main:create_app",
                    "--host",
                    urls.host,
                    "--port",
                    str(urls.port),
                ),
                *("--timeout-graceful-shutdown", "3", "--no-access-log"),
            ),
            needs_tables=False,  # it takes longest to import, and `/readyz` asks for databases and tables
            env={**NUMERICS, "ASSAY_HOST": urls.host, **pepper},
        ),
        ServiceSpec("sweeper", module_command("workers.sweeper")),
    ]
    specs += [
        ServiceSpec(
            f"worker{number}",
            module_command(
                *(
                    "workers",
                    "--quiet",
                    "-A",
                    "workers.celery_app:app",
                    "worker",
                    "-n",
                    f"worker{number}@%h",
                    "-l",
                    "WARNING",
                ),
                *(
                    "--pool",
                    "threads",
                    "--concurrency",
                    str(config.slots),
                    "--without-gossip",
                    "--without-mingle",
                ),
            ),
            grace=WORKER_GRACE,
            niceness=WORKER_NICENESS,
            env={
                "ASSAY_SHUTDOWN_SECONDS": WORKER_SHUTDOWN,
                **NUMERICS,
            },
        )
        for number in range(1, config.workers + 1)
    ]
    if config.simulator:
        address = ("--host", "127.0.0.1", "--port", str(urls.simulator_port))
        command = module_command("simulator", *address, *config.simulator_args)
        specs.append(ServiceSpec("simulator", command, needs_database=False, needs_tables=False, grace=3.0))
    return specs
