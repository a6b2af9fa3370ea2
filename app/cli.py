"""The operator's commands, together with the client's (:mod:`persona_assay.terminal.main`).

Heavy imports happen inside the commands that need them, so that every command starts fast.
"""

import contextlib
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from app.domain.providers.addresses import is_loopback
from app.terminal import doctor, init, keys, tenants
from app.terminal.findings import Finding
from app.terminal.keys import KeyStore
from persona_assay.terminal import reading
from persona_assay.terminal.main import COMMANDS, command_line, run
from persona_assay.terminal.options import AS_JSON, DEFAULT_URL, client_of
from persona_assay.terminal.outcome import CommandError, Commands, exit_by, print_json, say, told_errors
from persona_assay.terminal.waiting import wait_for

if TYPE_CHECKING:
    from app.llm.connections.connections import Connections
    from app.settings import Settings
    from embedded.services import StackConfig
    from persona_assay import AssayClient

Json = dict[str, Any]

PEPPER_FILE = "key-pepper"
"""File in the data directory with the secret that `assay up` hashes API keys with, unless a setting names another."""
DEMO_SIMULATOR = ("--latency-ms", "50", "--jitter-ms", "20")

app = command_line(Commands)


def main() -> None:
    """Run the command line."""
    run(app)


# -- the stack ----------------------------------------------------------------------------------------------------


@app.command()
@click.option("--host", help="Address to listen on. [ASSAY_HOST or 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port, 0 for any free one. [ASSAY_PORT or 8321]")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for data and logs. [ASSAY_DATA_DIR or .assay]",
)
@click.option(
    "--workers", type=click.IntRange(1, 64), help="Number of worker processes. [ASSAY_WORKERS or 1]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the URL as JSON when ready.")
def up(
    host: str | None, port: int | None, data_dir: Path | None, workers: int | None, *, as_json: bool
) -> None:
    """Run the whole service on this machine until Ctrl-C.

    Starts Postgres, Valkey, the API, workers and a simulated provider. If DATABASE_URL or REDIS_URL is set, that
    server is used instead of the embedded one. Without ASSAY_CONFIG, a file assay.yaml in this directory is the
    operator's file.
    """
    with told_errors():
        given = {"host": host, "port": port, "data_dir": data_dir, "workers": workers}
        settings = _settings({name: value for name, value in given.items() if value is not None})
        settings = _with_operator_file(settings)
        connections = _connections(settings)
        _require_keys_off_loopback(settings)
        _require_usable(settings)

        from embedded.supervisor import Supervisor  # noqa: PLC0415

        say(f"Starting in {settings.data_dir} …")
        with _stack_errors():
            Supervisor(_stack_config(_with_pepper(settings))).run(
                lambda url: _say_ready(url, settings, connections, as_json=as_json)
            )
        say("Stopped")


@app.command()
@click.option("--url", help="A running service with a simulated provider; without it, one is started.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default="assay-demo-report.html",
    help="File for the HTML report.",
)
@AS_JSON
def demo(url: str | None, output: Path, *, as_json: bool) -> None:
    """Run a job on simulated models and show its results and report."""
    with told_errors():
        if not output.absolute().parent.is_dir():
            raise CommandError(f"cannot write {output}: directory {output.absolute().parent} does not exist")
        with _demo_service(url) as service, client_of(service) as client:
            _run_demo(client, output, as_json=as_json, outlives_us=url is not None)


@app.command()
@click.option(
    "--to",
    metavar="REVISION",
    help="Migrate to this revision; an older one removes what later revisions added.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def migrate(to: str | None, *, as_json: bool) -> None:
    """Bring the schema of DATABASE_URL up to date."""
    with told_errors():
        settings = _settings({})
        if settings.database_url is None:
            raise CommandError("DATABASE_URL is not set: it names the database to migrate")

        owner = settings.owner_database_url or settings.database_url
        left_to_do = _migrate(owner, to, service_url=settings.database_url)
        if as_json:
            print_json({"migrated": True, "row_level_security": left_to_do is None})
        else:
            say(
                "The database schema is up to date"
                if to is None
                else f"The database schema is at revision {to}"
            )
        if left_to_do is not None:
            say(
                "Row-level security is not installed: this database user may not create roles."
                f" Ask an administrator to run `{left_to_do}`, then run `assay migrate` again"
            )


for command in COMMANDS:
    app.add_command(command)

# -- parts of commands --------------------------------------------------------------------------------------------


def _settings(given: Json) -> "Settings":
    """The environment's settings, overridden by the command line's.

    Raises:
        CommandError: A setting is invalid; the message names it.
    """
    from app.settings import StartError, load_settings  # noqa: PLC0415

    try:
        return load_settings(**given)
    except StartError as error:
        raise CommandError(str(error)) from error


def _connections(settings: "Settings") -> "Connections":
    """The operator's connections, without the simulator's.

    Raises:
        CommandError: They can't be read; the message names the field or the variable.
    """
    from app.bootstrap import load_operator_connections  # noqa: PLC0415
    from app.settings import StartError  # noqa: PLC0415

    try:
        return load_operator_connections(settings)
    except StartError as error:
        raise CommandError(str(error)) from error


def _tried(connections: "Connections") -> Iterator[Finding]:
    """Whether each connection's server answers and takes its key."""
    import asyncio  # noqa: PLC0415

    from app.services.providers.probing import probe_all  # noqa: PLC0415

    tried = asyncio.run(probe_all(connections, _settings({}).transport))
    yield from (Finding(*each) for each in tried)


def _with_operator_file(settings: "Settings") -> "Settings":
    """The settings with the operator's file of this directory, if none is set."""
    if settings.config is not None or not init.OPERATOR_FILE.is_file():
        return settings
    return settings.model_copy(update={"config": init.OPERATOR_FILE.absolute()})


def _migrate(database_url: str, revision: str | None = None, *, service_url: str | None = None) -> str | None:
    """Migrate a database to the newest or a given revision; returns the same as :func:`app.db.migration.migrate.upgrade`.

    Raises:
        CommandError: It can't be migrated now.
    """
    from app.db.migration.migrate import MigrationError, migrate_to, upgrade  # noqa: PLC0415

    try:
        if revision is None:
            return upgrade(database_url, service_url=service_url, tell=say)
        migrate_to(database_url, revision, tell=say)
    except MigrationError as error:
        raise CommandError(str(error)) from error
    return None


def _require_usable(settings: "Settings") -> None:
    """Refuse secrets that no process takes and a Redis that does not answer; processes would wait for it without a word.

    Raises:
        CommandError: The message names the setting.
    """
    import asyncio  # noqa: PLC0415

    from app.bootstrap import load_key_ring  # noqa: PLC0415
    from app.settings import StartError  # noqa: PLC0415

    _pepper(settings)
    try:
        load_key_ring(settings)
        unreachable = settings.redis_url and asyncio.run(settings.require_redis().why_unreachable())
    except StartError as error:
        raise CommandError(str(error)) from error
    if unreachable:
        raise CommandError(f"REDIS_URL: Redis can't be used: {unreachable}")


def _stack_config(settings: "Settings", simulator_args: tuple[str, ...] = ()) -> "StackConfig":
    from embedded.services import StackConfig  # noqa: PLC0415

    return StackConfig(
        host=settings.host,
        port=settings.port,
        data_dir=settings.data_dir.absolute(),
        workers=settings.workers,
        slots=settings.slots,
        database_url=settings.database_url,
        redis_url=settings.redis_url,
        encryption_keys_file=settings.encryption_keys_file,
        encryption_keys_set=settings.encryption_keys is not None,
        simulator_args=simulator_args,
        key_pepper_file=settings.key_pepper_file,
        owner_database_url=None if settings.database_url is None else settings.owner_database_url,
        config_file=settings.config,
    )


def _with_pepper(settings: "Settings") -> "Settings":
    """The settings with a pepper: if none is set, the data directory's own."""
    if settings.key_pepper is not None or settings.key_pepper_file is not None:
        return settings
    from embedded.directories import make_directory, make_secret  # noqa: PLC0415

    data_dir = settings.data_dir.absolute()
    with _stack_errors():
        make_directory(data_dir, mode=0o711)  # passable: Postgres may have to run as another account
        pepper = make_secret(data_dir / PEPPER_FILE)
    return settings.model_copy(update={"key_pepper_file": pepper})


@contextlib.contextmanager
def _key_store() -> Iterator[KeyStore]:
    """The keys of the configured service: in DATABASE_URL, or in the data directory's own database."""
    settings = _settings({})
    database_url = settings.database_url
    if database_url is not None:
        own = settings.data_dir.absolute() / PEPPER_FILE
        if settings.key_pepper is None and settings.key_pepper_file is None and own.exists():
            settings = settings.model_copy(update={"key_pepper_file": own})
        place = urlsplit(database_url)
        name = f"database {place.path.lstrip('/')} at {place.hostname or 'this machine'} (DATABASE_URL)"
        yield KeyStore(database_url, _pepper(settings), name, settings.database_pooler)
        return
    from embedded.postgres import database_of  # noqa: PLC0415

    data_dir = settings.data_dir.absolute()
    if _never_ran(settings):
        raise CommandError(
            f"no service has run in {data_dir}: start it there once with `assay up`, or name the service's directory with"
            " ASSAY_DATA_DIR or its database with DATABASE_URL"
        )
    settings = _with_pepper(settings)
    with _stack_errors(), database_of(data_dir) as url:
        _migrate(url)
        yield KeyStore(url, _pepper(settings), f"data directory {data_dir}")


def _pepper(settings: "Settings") -> bytes | None:
    from app.settings import StartError  # noqa: PLC0415

    try:
        return settings.read_key_pepper()
    except StartError as error:
        raise CommandError(str(error)) from error


def _require_keys_off_loopback(settings: "Settings") -> None:
    """Refuse to serve other machines without API keys.

    Raises:
        CommandError: There are no keys.
    """
    if is_loopback(settings.host):
        return
    from app.services.keys.api_keys import no_keys_yet  # noqa: PLC0415
    from app.terminal.keys import have_been_made  # noqa: PLC0415

    never_ran = _never_ran(settings)
    if never_ran or not have_been_made(_key_store):
        first = " (after one start without --host)" if never_ran else ""
        raise CommandError(no_keys_yet(f"listens on a loopback address only, not on {settings.host}") + first)


def _never_ran(settings: "Settings") -> bool:
    """Whether the data directory would hold the database, and holds none."""
    return settings.database_url is None and not (settings.data_dir / "postgres" / "cluster").exists()


@contextlib.contextmanager
def _demo_service(url: str | None) -> Iterator[str]:
    """The URL of the demo's service: the given one, or a stack of its own.

    The stack leaves nothing behind, except its logs after an error.
    """
    if url is not None:
        yield url
        return
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    data_dir = Path(tempfile.mkdtemp(prefix="assay-demo-"))
    data_dir.chmod(0o711)  # passable: Postgres may have to run as another account
    try:
        with _sigterm_interrupts(), _demo_stack(data_dir) as api:
            yield api
            say("Stopping …")
    except Exception:
        say(f"Logs are in {data_dir / 'logs'}")
        raise
    except KeyboardInterrupt:
        shutil.rmtree(data_dir, ignore_errors=True)
        raise
    shutil.rmtree(data_dir, ignore_errors=True)


@contextlib.contextmanager
def _demo_stack(data_dir: Path) -> Iterator[str]:
    """A running stack with its own databases, whatever DATABASE_URL says; yields its URL."""
    settings = _settings({"host": "127.0.0.1", "port": 0, "data_dir": data_dir})
    own = settings.model_copy(update={"database_url": None, "redis_url": None})
    with _stack_errors():
        from embedded.supervisor import Supervisor  # noqa: PLC0415

        say("Starting Postgres, Valkey, the API, a worker and the simulated provider …")
        with Supervisor(_stack_config(own, DEMO_SIMULATOR)) as stack:
            say(f"Ready at {stack.urls.api}")
            yield stack.urls.api


@contextlib.contextmanager
def _stack_errors() -> Iterator[None]:
    """Turn the stack's errors into command errors."""
    from embedded.process import StackError  # noqa: PLC0415

    try:
        yield
    except StackError as error:
        raise CommandError(str(error)) from error


@contextlib.contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that everything started is stopped."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    earlier = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _run_demo(client: "AssayClient", output: Path, *, as_json: bool, outlives_us: bool) -> None:
    from app.terminal.demo_job import DEMO_JOB  # noqa: PLC0415

    job = wait_for(client, client.submit(DEMO_JOB), as_json=as_json, outlives_us=outlives_us)
    found = client.results(job["id"])
    say("")
    if as_json:
        print_json(found)
    else:
        reading.print_results(found)
    reading.save_report(client, job["id"], output)
    say(f"HTML report: {output.resolve()}")
    exit_by(job)


def _say_ready(url: str, settings: "Settings", connections: "Connections", *, as_json: bool) -> None:
    if as_json:
        print_json({"url": url, "data_dir": str(settings.data_dir.absolute())})
        return
    click.echo(f"ready: {url}")
    for finding in _tried(connections):
        say(f"  {finding.line}")
    elsewhere = "" if url == DEFAULT_URL else f" --url {url}"
    say(f"  API docs    {url}/docs")
    say(f"  First job   assay demo --url {url}")
    say(f"  Results     assay jobs{elsewhere}, assay results JOB{elsewhere}")
    say(f"  Stop        Ctrl-C; data and logs stay in {settings.data_dir}")


def _findings() -> Iterator[Finding]:
    """What `assay doctor` says of settings, operator's file and connections."""
    settings = _with_operator_file(_settings({}))
    yield Finding("settings", True, f"valid; data directory {settings.data_dir.absolute()}")
    try:
        connections = _connections(settings)
    except CommandError as error:
        yield Finding("operator's file", False, str(error))
        return
    file = "none" if settings.config is None else str(settings.config)
    yield Finding("operator's file", True, f"{file}; connections: {len(list(connections))}")
    yield from _tried(connections)


def _environment() -> Mapping[str, str]:
    from app.settings import environment  # noqa: PLC0415

    return environment()


app.add_command(init.command(_tried, _environment))
app.add_command(doctor.command(_findings))
app.add_command(keys.group(_key_store))
app.add_command(tenants.group(_key_store))

if __name__ == "__main__":
    main()
