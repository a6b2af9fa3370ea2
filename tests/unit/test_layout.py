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
