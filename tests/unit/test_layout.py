"""Rules of docs/concepts.md that an import graph does not show; the others are contracts in pyproject.toml."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCIENCE = {"numpy", "scipy", "nltk"}
CRON = {"cronsim"}
"""What reads cron expressions: it computes times, and does no input or output."""
CONTRACT = {"pydantic", "pydantic_core", "annotated_types"}
"""What the HTTP contract's models are made with: they check values and do no input or output."""
INPUT_OUTPUT = {"asyncio", "http", "io", "logging", "os", "pathlib", "shutil", "socket", "sqlite3", "ssl"} | {
    *("subprocess", "tempfile", "threading", "time", "urllib")
}
DATABASE_HANDLES = {"AsyncConnection", "AsyncEngine"}
SLEEPS = {"asyncio.sleep", "time.sleep"}
CLOCKS = {"time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter"} | {
    *("time.perf_counter_ns", "datetime.now", "datetime.utcnow", "datetime.today", "date.today")
}
CLOCK_NAMES = {name.partition(".")[2] for name in CLOCKS}
TIMED_TESTS = ("tests/unit", "tests/integration", "tests/api", "tests/e2e", "tests/behaviour")
VIRTUAL_MARK = '\npytestmark = pytest.mark.usefixtures("virtual_time")\n'
VIRTUAL_TIME = ("tests/behaviour", "tests/integration/limits")
"""Where the event loop's time jumps: a task that sleeps takes no time there."""
PROCESSES = {
    "tests/api/service.py": "waits until a service process listens and has worked on a job",
    "tests/api/test_metrics.py": "waits until the processes of a service have told their metrics",
    "tests/e2e/stack.py": "waits for a stack's processes",
    "tests/integration/limits/test_ledger.py": "waits until worker processes have made calls",
    "tests/integration/simulator/conftest.py": "waits until the simulator's process listens",
    "tests/integration/simulator/test_process.py": "lets the simulator's process work meanwhile",
    "tests/integration/simulator/test_profiles.py": "sees how long the simulator's process takes",
}
"""Tests that have to do with real processes, which have the machine's clock."""
TO_CONVERT: set[str] = {
    "tests/unit/api/http/test_strict_json.py",
    "tests/unit/client/test_clients.py",
    "tests/unit/domain/webhooks/test_webhook.py",
    "tests/unit/llm/batches/test_batch_wire.py",
    "tests/integration/db/execution/test_shards.py",
    "tests/integration/db/migration/test_backfill.py",
    "tests/integration/db/test_engine.py",
    "tests/integration/db/test_health.py",
    "tests/integration/db/test_row_level_security.py",
    "tests/integration/jobs.py",
    "tests/integration/llm/batches/test_downloads.py",
    "tests/integration/llm/stub_provider.py",
    "tests/integration/llm/test_long_replies.py",
    "tests/integration/llm/transports/test_reuse.py",
    "tests/integration/llm/transports/test_surplus.py",
    "tests/integration/queue/test_sender.py",
    "tests/integration/services/batches/test_batches.py",
    "tests/integration/services/batches/test_interruptions.py",
    "tests/integration/services/execution/test_budget_reservations.py",
    "tests/integration/services/execution/test_calls_that_break_off.py",
    "tests/integration/services/execution/test_first_calls.py",
    "tests/integration/services/execution/test_leases.py",
    "tests/integration/services/execution/test_model_caller.py",
    "tests/integration/services/execution/test_permits.py",
    "tests/integration/services/execution/test_response_cache.py",
    "tests/integration/services/execution/test_result_writer.py",
    "tests/integration/services/jobs/test_check_model.py",
    "tests/integration/services/jobs/test_retention.py",
    "tests/integration/services/keys/test_authenticator.py",
    "tests/integration/services/keys/test_paused_tenants.py",
    "tests/integration/services/keys/test_spending_caps.py",
    "tests/integration/services/results/test_long_finalization.py",
    "tests/integration/services/results/test_read.py",
    "tests/integration/services/scheduling/test_dispatcher.py",
    "tests/integration/services/scheduling/test_give_back.py",
    "tests/integration/services/scheduling/test_run_shard.py",
    "tests/integration/services/uploads/test_packed.py",
    "tests/integration/services/watching/test_runs.py",
    "tests/integration/services/webhooks/test_deliver.py",
    "tests/integration/telemetry/test_board.py",
    "tests/integration/test_database_timeouts.py",
    "tests/integration/test_schema.py",
    "tests/integration/test_serve.py",
    "tests/api/test_key_limits.py",
    "tests/api/test_keys.py",
    "tests/api/test_limits.py",
    "tests/api/test_proxies.py",
    "tests/api/test_tenant_limits.py",
    "tests/api/test_webhooks.py",
    "tests/e2e/test_providers.py",
}
"""Tests that still wait or look at the clock; no others come to them."""


def sources(*places: str) -> list[Path]:
    found = [path for place in places for path in sorted((ROOT / place).rglob("*.py"))]
    assert found
    return found


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Each imported (module, name); the name is empty where the module itself is imported."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)


def real_time(source: str, virtual: bool = False) -> Iterator[str]:
    """Each line, with its text, that takes real time or reads a real clock.

    Args:
        source: A module's text.
        virtual: Its event loop's time jumps.
    """
    sleeps = SLEEPS - {"asyncio.sleep"} if virtual else SLEEPS
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr="sleep") as called, args=arguments):
                found = ast.unparse(called) in sleeps and [ast.unparse(each) for each in arguments] != ["0"]
            case ast.ImportFrom(module=module, names=names):
                found = any(f"{module}.{alias.name}" in SLEEPS | CLOCKS for alias in names)
            case ast.Attribute(attr=name) if name in CLOCK_NAMES:
                found = ast.unparse(node).replace("datetime.datetime", "datetime") in CLOCKS
            case _:
                continue
        if found:
            yield f"{node.lineno}: {ast.unparse(node)}"


class TestDomain:
    def test_it_is_pure_and_needs_only_the_sciences_its_models_and_packaged_data(self) -> None:
        allowed = (sys.stdlib_module_names - INPUT_OUTPUT) | SCIENCE | CONTRACT | CRON | {"app", "yaml"}
        used = {
            (path.relative_to(ROOT).as_posix(), module.split(".")[0])
            for path in sources("app/domain")
            for module, _ in imported(path)
        }
        assert {(path, module) for path, module in used if module not in allowed} == set()


class TestDatabase:
    def test_outside_db_its_handles_are_passed_on_and_its_errors_caught_but_no_sql_is_made(self) -> None:
        makers = [
            f"{path.relative_to(ROOT)}: {module} {name}"
            for path in sources("app", "workers")
            if not path.is_relative_to(ROOT / "app" / "db")
            for module, name in imported(path)
            if module.startswith("sqlalchemy")
            and not (
                module == "sqlalchemy.exc"
                or (module == "sqlalchemy.ext.asyncio" and name in DATABASE_HANDLES)
            )
        ]
        assert makers == []


class TestEnvironment:
    def test_only_the_settings_read_it(self) -> None:
        readers = {
            path.relative_to(ROOT).as_posix()
            for path in sources("app", "workers")
            if re.search(r"\bos\.(environ|getenv)\b", path.read_text("utf-8"))
            or any(module == "os" and name in {"environ", "getenv"} for module, name in imported(path))
        }
        assert readers == {"app/settings.py"}


class TestClock:
    def test_one_module_reads_the_clocks(self) -> None:
        """A test moves them there."""
        readers = {
            path.relative_to(ROOT).as_posix()
            for path in sources("app", "workers")
            if any(module == "time" for module, _ in imported(path))
            or re.search(r"\b(datetime\.(now|utcnow|today)|date\.today)\(", path.read_text("utf-8"))
        }
        assert readers == {"app/clock.py"}


class TestTimeOfTests:
    def test_none_sleeps_or_looks_at_the_clock(self) -> None:
        """Waits are for events; time passes in tests/virtual_time.py, where a busy machine changes nothing."""
        files = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sources(*TIMED_TESTS)}
        timed = {
            file: uses
            for file, source in files.items()
            if (uses := list(real_time(source, file.startswith(VIRTUAL_TIME) or VIRTUAL_MARK in source)))
        }
        listed = PROCESSES.keys() | TO_CONVERT
        assert {file: uses for file, uses in timed.items() if file not in listed} == {}
        assert listed - timed.keys() == set(), "need their places no longer"

    def test_what_takes_time_is_found_however_it_is_written(self) -> None:
        found = ["asyncio.sleep(0.1)", "time.sleep(delay)", "asyncio.sleep(0, 1)", "datetime.now(UTC)"]
        found += ["datetime.datetime.now()", "from time import monotonic", "clock = time.perf_counter"]
        assert [source for source in found if not list(real_time(source))] == []
        assert list(real_time("asyncio.sleep(0); loop.time(); asyncio.timeout(60)")) == []
        assert list(real_time("asyncio.sleep(1)", virtual=True)) == []
        assert list(real_time("time.sleep(1)", virtual=True)) != []


class TestApi:
    def test_what_handlers_depend_on_is_found_without_a_thread(self) -> None:
        """A plain function would be run by another thread: two changes of threads each, on a busy machine milliseconds."""

        def nodes(*places: str) -> list[ast.AST]:
            trees = [ast.parse(path.read_text("utf-8")) for path in sources(*places)]
            return [node for tree in trees for node in ast.walk(tree)]

        named = {
            ast.unparse(node.args[0]).rpartition(".")[2]
            for node in nodes("app")
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Depends"
        }
        assert "check_scope" in named
        plain = [n.name for n in nodes("app/api") if isinstance(n, ast.FunctionDef) and n.name in named]
        assert plain == []
