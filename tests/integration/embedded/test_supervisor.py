import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import redis

from embedded.postgres import EmbeddedPostgres
from embedded.process import StackError
from embedded.services import ServiceSpec, StackConfig, StackUrls
from embedded.supervisor import Supervisor, free_port
from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import libpq_url
from tests.observe import alive, descendants, eventually

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[3]

# Stand-ins for the services: they show what a service gets and what it leaves, without the time that the real ones take.
API = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(dict(os.environ)).encode())
HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
WORKER = """
import os, signal, sys, time
import psycopg
with psycopg.connect(os.environ["DATABASE_URL"].replace("+psycopg", ""), autocommit=True) as connection:
    connection.execute("INSERT INTO deeds VALUES ('worker started')")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(connection.execute("INSERT INTO deeds VALUES ('worker stopped')") and 0))
    print("working", flush=True)
    time.sleep(60)
"""
MIGRATION = """
import os
import psycopg
with psycopg.connect(os.environ["DATABASE_URL"].replace("+psycopg", "")) as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS deeds (deed text)")
"""
READY_AT = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == sys.argv[3] else 503)
        self.end_headers()
HTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"""
SLEEP = "import time; time.sleep(60)"
SERVES_UNTIL_TOLD = """
import sys
from pathlib import Path
from embedded.supervisor import Supervisor
from tests.integration.embedded.test_supervisor import configuration, migration, services
stack = Supervisor(configuration(Path(sys.argv[1])), services=services, migration=migration)
stack.run(lambda url: print(url, *stack.pids().values(), flush=True))
print("stopped", flush=True)
"""


def python(script: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script, *arguments)


def configuration(data_dir: Path, *, port: int = 0) -> StackConfig:
    return StackConfig(
        host="127.0.0.1",
        port=port,
        data_dir=data_dir,
        workers=1,
        simulator=True,
    )


def services(_: StackConfig, urls: StackUrls) -> list[ServiceSpec]:
    return [
        ServiceSpec("api", python(API, urls.host, str(urls.port)), needs_tables=False),
        ServiceSpec("worker1", python(WORKER)),
        ServiceSpec("simulator", python(SLEEP), needs_database=False, needs_tables=False),
    ]


def migration(_: StackConfig) -> tuple[str, ...]:
    return python(MIGRATION)


def supervisor(data_dir: Path) -> Supervisor:
    return Supervisor(configuration(data_dir), services=services, migration=migration)


def stack_says(stack: Supervisor) -> str:
    """The last words of a stack that does not start."""
    with pytest.raises(StackError) as caught:
        stack.start()
    return str(caught.value).splitlines()[-1]


def deeds(url: str) -> list[str]:
    with closing(psycopg.connect(libpq_url(url))) as connection:
        return [deed for (deed,) in connection.execute("SELECT deed FROM deeds")]


def taken_port() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def given_databases(data_dir: Path, postgres: EmbeddedPostgres, valkey: EmbeddedValkey) -> StackConfig:
    config = configuration(data_dir)
    return replace(config, database_url=postgres.url(), redis_url=valkey.url(), simulator=False)


@contextmanager
def running_program(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process of its own that runs a stack, and the pids of the parts."""
    command = python(SERVES_UNTIL_TOLD, str(data_dir))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT) as program:
        try:
            assert program.stdout is not None
            _, *pids = program.stdout.readline().split()
            yield program, list(map(int, pids))
        finally:
            program.kill()


def interrupt_when(holds: Callable[[], bool]) -> None:
    """Has this process get a SIGINT, as from Ctrl-C, as soon as something holds."""

    def watch() -> None:
        if eventually(holds, 120):
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()


@pytest.fixture(scope="module")
def stack() -> Iterator[Supervisor]:
    with scratch_directory() as directory, supervisor(directory) as running:
        yield running


class TestRunningStack:
    def test_the_api_answers_and_knows_where_the_other_parts_are(self, stack: Supervisor) -> None:
        with urllib.request.urlopen(f"{stack.urls.api}/anything") as response:
            environment = json.load(response)
        assert environment["DATABASE_URL"] == stack.urls.database
        assert environment["REDIS_URL"] == stack.urls.redis
        assert environment["ASSAY_SIMULATOR_URL"] == f"http://127.0.0.1:{stack.urls.simulator_port}"

    def test_every_part_has_its_own_living_process_and_log(self, stack: Supervisor) -> None:
        pids = stack.pids()
        assert set(pids) == {"postgres", "valkey", "api", "worker1", "simulator"}
        assert all(map(alive, pids.values()))
        logs = Path(f"/proc/{pids['worker1']}/fd/1").resolve().parent
        assert eventually(lambda: (logs / "worker1.log").read_text().startswith("working"))

    @pytest.mark.parametrize("name", ["valkey", "worker1", "simulator", "api", "postgres"])
    def test_a_part_that_is_killed_is_started_again(self, stack: Supervisor, name: str) -> None:
        killed = stack.pids()[name]
        os.kill(killed, signal.SIGKILL)
        assert eventually(lambda: stack.pids().get(name, killed) != killed)

    def test_the_addresses_stay_and_committed_rows_with_them(self, stack: Supervisor) -> None:
        def answers() -> bool:
            try:
                with redis.Redis.from_url(stack.urls.redis) as client:
                    return client.ping() and "worker started" in deeds(stack.urls.database)
            except (psycopg.OperationalError, redis.ConnectionError):
                return False

        for name in ("valkey", "postgres"):
            os.kill(stack.pids()[name], signal.SIGKILL)
        assert eventually(answers)

    def test_a_second_stack_on_the_directory_is_refused_with_the_holders_pid(self, stack: Supervisor) -> None:
        second = Supervisor(stack._config, services=services, migration=migration)
        with pytest.raises(StackError, match=rf"in use by process {os.getpid()}:"):
            second.start()
        assert len(stack.pids()) == 5


class TestStart:
    @pytest.mark.parametrize(("workers", "path"), [(1, "/readyz"), (0, "/healthz")])
    def test_waits_until_a_job_would_run_if_there_are_workers(
        self, scratch: Path, workers: int, path: str
    ) -> None:
        stack = Supervisor(
            replace(configuration(scratch), workers=workers),
            services=lambda _, urls: [ServiceSpec("api", python(READY_AT, urls.host, str(urls.port), path))],
            migration=migration,
        )
        with stack as running:
            assert set(running.pids()) == {"postgres", "valkey", "api"}

    def test_what_needs_no_tables_starts_before_they_are_there(self, scratch: Path) -> None:
        waits_for_the_api = """
import os, sys, time, urllib.request
for _ in range(600):
    try:
        urllib.request.urlopen(sys.argv[1])
    except OSError:
        time.sleep(0.1)
    else:
        sys.exit(0)
sys.exit("the API does not answer")
"""
        port = free_port("127.0.0.1", 0)
        stack = Supervisor(
            configuration(scratch, port=port),
            services=lambda config, urls: services(config, urls)[:1],
            migration=lambda _: python(waits_for_the_api, f"http://127.0.0.1:{port}/"),
        )
        with stack:
            assert set(stack.pids()) == {"postgres", "valkey", "api"}

    def test_a_taken_port_is_named_before_anything_is_made(self, scratch: Path) -> None:
        with taken_port() as listener:
            port = listener.getsockname()[1]
            stack = Supervisor(
                configuration(scratch / "data", port=port), services=services, migration=migration
            )
            with pytest.raises(StackError, match=f"port {port} on 127.0.0.1 is taken"):
                stack.start()
        assert not (scratch / "data/postgres").exists()

    def test_a_free_port_is_kept_for_its_server(self) -> None:
        port = free_port("127.0.0.1", 0)
        with socket.socket() as another, pytest.raises(OSError, match="in use"):
            another.bind(("127.0.0.1", port))
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with (
            socket.create_server(("127.0.0.1", port)),
            socket.create_connection(("127.0.0.1", port)),
            pytest.raises(StackError, match=f"port {port} on 127.0.0.1 is taken"),
        ):
            free_port("127.0.0.1", port)

    def test_an_address_of_another_machine_is_refused(self, scratch: Path) -> None:
        config = StackConfig(
            host="192.0.2.1",
            port=0,
            data_dir=scratch,
            workers=1,
            simulator=False,
        )
        with pytest.raises(StackError, match=r"cannot listen on 192\.0\.2\.1"):
            Supervisor(config, services=services, migration=migration).start()

    @pytest.mark.parametrize("broken", ["migrations", "worker1"])
    def test_a_part_that_ends_before_the_stack_is_ready_is_an_error_and_leaves_nothing(
        self, broken: str, postgres: EmbeddedPostgres, valkey: EmbeddedValkey, scratch: Path
    ) -> None:
        failing = python("import sys; sys.exit('no such column')")
        sleeping = python(SLEEP)
        stack = Supervisor(
            given_databases(scratch, postgres, valkey),
            services=lambda *_: [ServiceSpec("worker1", failing), ServiceSpec("api", sleeping)],
            migration=lambda _: failing if broken == "migrations" else python(""),
        )
        with pytest.raises(StackError, match=rf"{broken} ended with status 1\.\nno such column"):
            stack.start()
        assert stack.pids() == {}

    @pytest.mark.parametrize("owner", [None, "postgresql://owner@given/database"])
    def test_migrations_connect_as_the_owner_of_these_databases_and_of_no_others(
        self,
        owner: str | None,
        postgres: EmbeddedPostgres,
        valkey: EmbeddedValkey,
        scratch: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("ASSAY_OWNER_DATABASE_URL", "postgresql://owner@elsewhere/database")
        config = replace(given_databases(scratch, postgres, valkey), owner_database_url=owner)
        tells = python("import os, sys; sys.exit(f'<{os.environ[\"ASSAY_OWNER_DATABASE_URL\"]}>')")
        stack = Supervisor(config, services=services, migration=lambda _: tells)
        assert stack_says(stack) == f"<{owner or ''}>"

    def test_databases_that_are_given_are_used_and_none_is_started(
        self, postgres: EmbeddedPostgres, valkey: EmbeddedValkey, scratch: Path
    ) -> None:
        def api_only(_: StackConfig, urls: StackUrls) -> list[ServiceSpec]:
            return [ServiceSpec("api", python(API, urls.host, str(urls.port)))]

        config = given_databases(scratch, postgres, valkey)
        with Supervisor(config, services=api_only, migration=lambda _: python("")) as stack:
            assert set(stack.pids()) == {"api"}
            assert (stack.urls.database, stack.urls.redis) == (postgres.url(), valkey.url())
            assert "ASSAY_SIMULATOR_URL" not in stack.urls.environment()


class TestEnd:
    def test_services_stop_in_good_order_before_the_databases_and_rows_survive(self, scratch: Path) -> None:
        with supervisor(scratch / "data") as stack:
            pids = stack.pids()
            log = scratch / "data/logs/worker1.log"
            assert eventually(lambda: log.read_text() == "working\n")
        assert not any(map(alive, pids.values()))
        with supervisor(scratch / "data") as stack:
            assert deeds(stack.urls.database)[:2] == ["worker started", "worker stopped"]

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_or_a_closed_terminal_stops_everything(
        self, scratch: Path, number: signal.Signals
    ) -> None:
        with running_program(scratch) as (program, pids):
            program.send_signal(number)
            assert program.communicate()[0] == "stopped\n"
            assert program.returncode == 0
            assert not any(map(alive, pids))

    def test_ctrl_c_during_the_start_stops_everything(self, scratch: Path) -> None:
        stack = Supervisor(configuration(scratch), services=lambda *_: [], migration=lambda _: python(SLEEP))
        log = scratch / "logs/migrations.log"
        interrupt_when(log.exists)
        stack.run(lambda _: pytest.fail("it cannot be ready"))
        assert stack.pids() == {}

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
    def test_nothing_outlives_a_supervisor_that_is_killed_and_the_next_one_starts(
        self, scratch: Path
    ) -> None:
        with running_program(scratch) as (program, pids):
            family = descendants(program.pid)
            assert set(pids) <= set(family)
            assert len(family) > len(pids)  # Postgres has processes of its own
            assert eventually(lambda: (scratch / "logs/worker1.log").read_text() == "working\n")
            program.kill()
            assert eventually(lambda: not any(map(alive, family)))
        with supervisor(scratch) as stack:
            assert "worker started" in deeds(stack.urls.database)


class TestReadiness:
    def test_the_start_waits_until_the_api_says_that_it_is_ready(
        self, postgres: EmbeddedPostgres, valkey: EmbeddedValkey, scratch: Path
    ) -> None:
        counter = scratch / "asked"
        late = API.replace("send_response(200)", f"send_response(200 if ask({str(counter)!r}) > 3 else 503)")
        count = "def ask(path):\n    open(path, 'a').write('x')\n    return os.path.getsize(path)\n"
        config = given_databases(scratch, postgres, valkey)
        stack = Supervisor(
            config,
            services=lambda _, urls: [ServiceSpec("api", python(count + late, urls.host, str(urls.port)))],
            migration=lambda _: python(""),
        )
        with stack:
            assert counter.read_text() == "xxxx"  # 503 three times, then 200
