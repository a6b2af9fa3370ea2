import os
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from functools import cache
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

import embedded
from embedded.postgres import EmbeddedPostgres, servers_in
from embedded.process import RunAs, StackError, launch_command
from tests.databases import libpq_url
from tests.observe import alive, eventually

pytestmark = pytest.mark.slow

IS_ROOT = os.geteuid() == 0
SERVES = """
import os, sys
from pathlib import Path
import psycopg
from embedded.postgres import EmbeddedPostgres
with EmbeddedPostgres(Path(sys.argv[1]) / "postgres", durable=False) as server:
    with psycopg.connect(server.url().replace("+psycopg", "")) as connection:
        print(os.geteuid(), connection.execute("SELECT 40 + 2").fetchone()[0])
"""
SERVES_UNTIL_KILLED = """
import sys, time
from pathlib import Path
from embedded.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
server.start()
print(server.process.pid, server.url(), flush=True)
time.sleep(60)
"""


def query(server: EmbeddedPostgres, statement: str) -> object:
    with closing(psycopg.connect(libpq_url(server.url()), autocommit=True)) as connection:
        cursor = connection.execute(statement)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


@cache
def refusal_of_namespaces() -> str | None:
    """Why the kernel lets nobody have a user namespace; None where it does."""
    run_as = RunAs.nobody("namespace")
    command = launch_command([sys.executable, "-I", "-S", "-c", ""], run_as=run_as, directory=Path("/"))
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode else None


def needs_namespaces() -> None:
    """Skips a test where there are none."""
    if refusal := refusal_of_namespaces():
        pytest.skip(f"no user namespaces: {refusal}")


def interpreter_for(uid: int) -> str | None:
    """A Python of this version that an account can run, or None; a root user's own is often hidden in /root."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin")):
        if candidate is None:
            continue
        try:
            subprocess.run([candidate, "-c", ""], user=uid, cwd="/", check=True)
        except PermissionError:
            continue
        return candidate
    return None


def package_home(package: ModuleType) -> Path:
    return Path(package.__path__[0]).parent


class TestServer:
    def test_it_has_a_database_in_utf_8_that_sorts_alike_everywhere(self, postgres: EmbeddedPostgres) -> None:
        assert query(postgres, "SELECT current_user || '@' || current_database()") == "assay@assay"
        assert query(postgres, "SHOW server_encoding") == "UTF8"
        assert query(postgres, "SELECT datlocale FROM pg_database WHERE datname = 'assay'") == "C.UTF-8"
        assert query(postgres, "SELECT upper('é') || lower('Σ')") == "Éσ"
        assert query(postgres, "SHOW data_checksums") == "on"

    def test_it_listens_on_no_network(self, postgres: EmbeddedPostgres) -> None:
        assert query(postgres, "SHOW listen_addresses") == ""

    def test_its_role_may_make_databases_but_run_no_programs(self, postgres: EmbeddedPostgres) -> None:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            query(postgres, "COPY pg_class TO PROGRAM 'cat'")

    def test_it_is_reached_whatever_the_environment_says_of_other_servers(
        self, postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGPORT", "6543")
        assert query(postgres, "SHOW port") == "5432"

    def test_its_sockets_are_private_and_short_named_however_long_the_data_directory_is(
        self, scratch: Path
    ) -> None:
        deep = scratch / ("d" * 120) / "postgres"
        with EmbeddedPostgres(deep, durable=False) as server:
            sockets = (deep / "sockets").readlink()
            assert sockets.stat().st_mode & 0o777 == 0o700
            assert len(str(sockets / ".s.PGSQL.5432")) < 100
            assert query(server, "SELECT 1") == 1
        assert not sockets.exists()

    def test_durable_data_survive_a_restart(self, scratch: Path) -> None:
        server = EmbeddedPostgres(scratch / "postgres")
        with server:
            query(server, "CREATE TABLE kept AS SELECT 42 AS answer")
            assert query(server, "SHOW fsync") == "on"
        with server:
            assert query(server, "SELECT answer FROM kept") == 42


class TestAccounts:
    @pytest.mark.skipif(not IS_ROOT, reason="only root has to become somebody else")
    @pytest.mark.parametrize("kind", ["namespace", "user"])
    def test_root_serves_in_disguise_or_as_nobody(self, kind: str, scratch: Path) -> None:
        if kind == "namespace":
            needs_namespaces()
        account = RunAs.nobody("namespace" if kind == "namespace" else "user")
        with EmbeddedPostgres(scratch / "postgres", durable=False, run_as=account) as server:
            assert query(server, "SELECT 1") == 1
            assert Path(f"/proc/{server.process.pid}").stat().st_uid == account.owner[0]

    @pytest.mark.skipif(not IS_ROOT, reason="needs a change of account between two starts")
    def test_a_cluster_follows_a_change_of_account(self, scratch: Path) -> None:
        needs_namespaces()
        for kind in ("user", "namespace", "user"):
            account = RunAs.nobody("namespace" if kind == "namespace" else "user")
            with EmbeddedPostgres(scratch / "postgres", durable=False, run_as=account) as server:
                query(server, "CREATE TABLE IF NOT EXISTS kept AS SELECT 42 AS answer")
                assert query(server, "SELECT answer FROM kept") == 42

    @pytest.mark.skipif(not IS_ROOT, reason="only root has to become somebody else")
    def test_a_directory_that_the_other_account_cannot_reach_is_named(self, scratch: Path) -> None:
        closed = scratch / "closed"
        closed.mkdir(mode=0o700)
        with pytest.raises(
            StackError, match=rf"(?s)set DATABASE_URL.*{closed}/postgres: .*Permission denied"
        ):
            EmbeddedPostgres(closed / "postgres", run_as=RunAs.nobody("user")).start()

    @pytest.mark.skipif(not IS_ROOT, reason="the whole suite then runs as an ordinary user")
    def test_an_ordinary_user_serves(self, scratch: Path) -> None:
        nobody = RunAs.nobody("user")
        python = interpreter_for(nobody.uid)
        if python is None:
            pytest.skip(f"no interpreter that the account {nobody.uid} can run")
        home = scratch / "home"
        home.mkdir()
        os.chown(home, *nobody.owner)
        done = subprocess.run(
            [python, "-c", SERVES, str(home)],
            user=nobody.uid,
            group=nobody.gid,
            extra_groups=[],
            cwd=home,
            env={"PYTHONPATH": f"{package_home(embedded)}:{package_home(psycopg)}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == (f"{nobody.uid} 42\n", "")


class TestLeftovers:
    def test_a_second_server_on_the_directory_is_refused_with_the_holders_pid(self, scratch: Path) -> None:
        with EmbeddedPostgres(scratch / "postgres", durable=False) as server:
            second = EmbeddedPostgres(scratch / "postgres", durable=False)
            with pytest.raises(StackError, match=rf"in use by process {os.getpid()}:"):
                second.start()
            assert query(server, "SELECT 1") == 1

    def test_a_server_that_somebody_else_started_is_named(
        self, scratch: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("embedded.postgres.SURVIVOR_SECONDS", 0.1)
        server = EmbeddedPostgres(scratch / "postgres", durable=False)
        with server:
            with pytest.raises(StackError, match=rf"in use by Postgres process .*{server.process.pid}"):
                server.restart()
            assert server.process.running

    def test_a_killed_server_starts_again_at_the_same_address_with_what_was_committed(
        self, scratch: Path
    ) -> None:
        with EmbeddedPostgres(scratch / "postgres") as server:
            url, pid = server.url(), server.process.pid
            assert pid is not None
            query(server, "CREATE TABLE kept AS SELECT 42 AS answer")
            os.kill(pid, signal.SIGKILL)
            assert eventually(lambda: not server.process.running)
            server.restart()
            assert server.url() == url
            assert query(server, "SELECT answer FROM kept") == 42

    def test_a_stale_pid_file_that_names_a_living_stranger_is_no_obstacle(self, scratch: Path) -> None:
        server = EmbeddedPostgres(scratch / "postgres", durable=False)
        with server:
            pid_file = scratch / "postgres/cluster/postmaster.pid"
            old = pid_file.read_text()
        with subprocess.Popen(["/bin/sleep", "60"]) as stranger:
            pid_file.write_text("\n".join([str(stranger.pid), *old.splitlines()[1:]]) + "\n")
            with server:
                assert query(server, "SELECT 1") == 1
            stranger.kill()

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
    def test_all_its_processes_end_with_a_starter_that_is_killed_and_the_next_start_works(
        self, scratch: Path
    ) -> None:
        directory = scratch / "postgres"
        with subprocess.Popen(
            [sys.executable, "-c", SERVES_UNTIL_KILLED, str(directory)], stdout=subprocess.PIPE, text=True
        ) as starter:
            assert starter.stdout is not None
            pid, url = starter.stdout.readline().split()
            sockets = (directory / "sockets").readlink()
            with closing(psycopg.connect(libpq_url(url))) as busy:  # a backend in the middle of a transaction
                busy.execute("CREATE TABLE gone ()")
                family = [int(pid), *servers_in(directory / "cluster")]
                assert busy.info.backend_pid in family
                starter.kill()
                assert eventually(lambda: not any(map(alive, family)))
        with EmbeddedPostgres(directory, durable=False) as server:
            assert query(server, "SELECT to_regclass('gone')") is None
        assert not sockets.exists()

    def test_a_half_made_cluster_is_made_anew(self, scratch: Path) -> None:
        half = scratch / "postgres/cluster.new"
        half.mkdir(parents=True)
        (half / "PG_VERSION").write_text("18\n")
        with EmbeddedPostgres(scratch / "postgres", durable=False) as server:
            assert query(server, "SELECT 1") == 1
