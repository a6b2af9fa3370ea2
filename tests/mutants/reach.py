"""Finds the tests that reach each mutant, by one run of all tests on a tree with a probe before each mutant."""

import ast
import os
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.mutants.mutations import Function, Mutation

PROBE = "mutants_probe"
LEVELS = ("tests/unit", "tests/integration", "tests/api", "tests/e2e")


def reaching_tests(
    tree: Path, places: Mapping[int, tuple[str, Function, Mutation]], files: Mapping[int, str], processes: int
) -> dict[int, list[str]]:
    """Return the tests that reach each mutant, nearest first; those that fail without a mutation are left out."""
    _add_probes(tree, places)
    records = tree / "build" / "reach"
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
    options = ["-q", "-p", PROBE, "--numprocesses", str(processes), "--dist", "loadfile"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [tree / ".venv/bin/python", "-m", "pytest", *options], cwd=tree, env=environment, check=False
    )
    return nearest_first(records, files)


def nearest_first(records: Path, files: Mapping[int, str]) -> dict[int, list[str]]:
    """Order each mutant's tests: lower levels first, then the file named after the module, then specific and quick files."""
    users = defaultdict(set)
    for test, *shared in _lines(records, "uses"):
        for label in (test, *shared):
            users[label].add(test)
    failed = {test for (test,) in _lines(records, "failed")}
    found: defaultdict[int, set[str]] = defaultdict(set)
    for number, label in _lines(records, "hits"):
        found[int(number)] |= users[label] - failed
    reached = Counter(test for tests in found.values() for test in tests)
    seconds: defaultdict[str, float] = defaultdict(float)
    for test, took in _lines(records, "took"):
        seconds[test] += float(took)

    def ordered(tests: set[str], module: str) -> list[str]:
        by_file = defaultdict(list)
        for test in tests:
            by_file[_file(test)].append(test)
        ranks = {}
        for file, own in by_file.items():
            level = next((index for index, name in enumerate(LEVELS) if file.startswith(name)), len(LEVELS))
            is_namesake = Path(file).stem == f"test_{Path(module).stem}"
            fewest, time = min(reached[test] for test in own), sum(seconds[test] for test in own)
            ranks[file] = level, not is_namesake, fewest, time
        return sorted(tests, key=lambda test: (ranks[_file(test)], test))

    return {number: ordered(tests, files[number]) for number, tests in found.items()}


def _file(test: str) -> str:
    return test.partition("::")[0]


def _lines(records: Path, kind: str) -> Iterator[list[str]]:
    for path in records.glob(f"{kind}-*"):
        yield from (line.split("\t") for line in path.read_text("utf-8").splitlines())


def _add_probes(tree: Path, places: Mapping[int, tuple[str, Function, Mutation]]) -> None:
    probes: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for number, (file, function, mutation) in places.items():
        statement = _statement_with(mutation, function, (tree / file).read_text("utf-8").splitlines())
        call = f"{' ' * statement.col_offset}__import__({PROBE!r}).reached({number})"
        probes[file][statement.lineno] = call
    for file, inserted in probes.items():
        lines = (tree / file).read_text("utf-8").splitlines()
        for line in sorted(inserted, reverse=True):
            lines.insert(line - 1, inserted[line])
        (tree / file).write_text("\n".join(lines) + "\n", "utf-8")
    shutil.copy(Path(__file__).with_name("probe.py"), tree / f"{PROBE}.py")


def _statement_with(mutation: Mutation, function: Function, lines: list[str]) -> ast.stmt:
    """Find the innermost statement with a mutation before which another one can stand."""
    documented = ast.get_docstring(function) is not None and len(function.body) > 1
    found = function.body[1 if documented else 0]
    for statement in ast.walk(function):  # outer statements come first
        if (
            isinstance(statement, ast.stmt)
            and statement is not function
            and statement.lineno <= mutation.node.lineno
            and (statement.end_lineno or 0) >= (mutation.node.end_lineno or 0)
            and not lines[statement.lineno - 1].lstrip().startswith("elif")
            and not getattr(statement, "decorator_list", [])
        ):
            found = statement
    return found
