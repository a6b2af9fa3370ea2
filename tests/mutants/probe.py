"""Records which tests reach which mutants' code: a pytest plugin, and the probe inserted into the code.

It is copied to the top of a tree, which may be of an older commit, so it imports nothing of ours. A pytest process
writes the name of the running test into a file that its child processes map into memory.
"""

import mmap
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).with_name("build") / "reach"
RUNNING = "MUTANTS_RUNNING"
LENGTH = 512

_seen: set[tuple[int, bytes]] = set()


@cache
def _running() -> list[mmap.mmap]:
    """Map what runs; a process without inherited environment counts for all pytest processes."""
    paths = [Path(os.environ[RUNNING])] if RUNNING in os.environ else sorted(RECORDS.glob("running-*"))
    maps = []
    for path in paths:
        with path.open("r+b") as file:
            maps.append(mmap.mmap(file.fileno(), LENGTH))
    return maps


def _write(kind: str, line: str) -> None:
    with (RECORDS / f"{kind}-{os.getpid()}").open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def reached(mutant: int) -> None:
    """Record that a mutant's code is about to run, once for each test or shared fixture."""
    for running in _running():
        label = running[:LENGTH]
        if (mutant, label) not in _seen:
            _seen.add((mutant, label))
            with suppress(OSError):  # no file can be opened any more
                _write("hits", f"{mutant}\t{label.rstrip(bytes(1)).decode(errors='replace')}")


def _name(label: str) -> None:
    (running,) = _running()
    running[:LENGTH] = label.encode()[:LENGTH].ljust(LENGTH, b"\0")


def _test(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _fixture(definition: Any) -> str:
    return f"fixture {definition.baseid}:{definition.argname}"


def pytest_configure() -> None:
    """Make this process's file."""
    path = RECORDS / f"running-{os.getpid()}"
    path.write_bytes(bytes(LENGTH))
    os.environ[RUNNING] = str(path)
    _running.cache_clear()  # what conftest.py imports may have asked already


def pytest_runtest_setup(item: Any) -> None:
    """Record the shared fixtures that a test uses."""
    _name(_test(item.nodeid))
    definitions = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
    shared = [_fixture(definition) for definition in definitions if definition.scope != "function"]
    _write("uses", "\t".join((_test(item.nodeid), *shared)))


def pytest_fixture_setup(fixturedef: Any, request: Any) -> None:
    """Attribute what a shared fixture reaches to all tests that use it."""
    _name(_fixture(fixturedef) if fixturedef.scope != "function" else _test(request.node.nodeid))


def pytest_runtest_call(item: Any) -> None:
    """Attribute what runs from now on to the test."""
    _name(_test(item.nodeid))


def pytest_runtest_logreport(report: Any) -> None:
    """Record what tests take, and which fail without a mutation: those can't tell anything."""
    _write("took", f"{_test(report.nodeid)}\t{report.duration:.3f}")
    if report.failed:
        _write("failed", _test(report.nodeid))
