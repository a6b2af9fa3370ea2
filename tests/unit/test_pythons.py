"""Which of a machine's Pythons the setup takes, and which are skipped, told by interpreters that only claim to be what they are."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKE = """#!/bin/sh
case "$1" in
    --version) echo "Python {version}" ;;
    -c) case "$2" in *ensurepip*) exit {without_venv} ;; esac
        exec {python} -I -c "import sys; sys.version_info = (*map(int, '{version}'.split('.')), 'final', 0)
$2" ;;
    *) echo "ran: $*"; exit 7 ;;
esac
"""
"""What it is asked to run as a module it only says."""


class Machine:
    """A checkout's scripts, and Pythons beside them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / "bin"
        self._path.mkdir()
        (directory / ".ci").mkdir()
        for script in (ROOT / ".ci").iterdir():
            shutil.copy(script, directory / ".ci")

    def has(self, **versions: str) -> None:
        """Puts Pythons there by name; a version that ends with `!` can't make virtual environments."""
        for name, version in versions.items():
            fake = self._path / name.replace("_", ".")
            fake.write_text(
                FAKE.format(
                    version=version.rstrip("!"),
                    without_venv=int(version.endswith("!")),
                    python=sys.executable,
                )
            )
            fake.chmod(0o755)

    def run(self, script: str, *names: str) -> tuple[int, str, str]:
        found = subprocess.run(
            [self._directory / ".ci" / script, *names],
            env={"PATH": f"{self._path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        return found.returncode, found.stdout, found.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


NAMES = ("fake3", "fake3.11", "fake3.13", "fake3.14")


class TestSetup:
    @pytest.mark.parametrize(
        ("there", "taken"),
        [
            ({"fake3": "3.12.1"}, "3.12.1"),
            ({"fake3": "3.15.2", "fake3_13": "3.13.0"}, "3.13.0"),
            ({"fake3": "3.15.2", "fake3_11": "3.11.0!", "fake3_14": "3.14.10"}, "3.14.10"),
            ({"fake3": "3.10.9", "fake3_11": "3.11.0"}, "3.11.0"),
            ({"fake3": "4.0.0", "fake3_13": "3.13.1!", "fake3_14": "3.14.0"}, "3.14.0"),
        ],
    )
    def test_takes_the_first_that_is_known_to_work(
        self, machine: Machine, there: dict[str, str], taken: str
    ) -> None:
        machine.has(**there)
        status, said, warned = machine.run("setup", *NAMES)
        assert (status, warned) == (7, "")
        assert said == f"Making .venv with Python {taken}\nran: -m venv .venv\n"

    def test_tries_a_newer_one_where_there_is_no_other_and_says_so(self, machine: Machine) -> None:
        machine.has(fake3="3.15.2", fake3_11="3.10.1")
        _, said, warned = machine.run("setup", *NAMES)
        assert said.startswith("Making .venv with Python 3.15.2\n")
        assert (
            warned
            == "Python 3.15.2 is newer than those known to work, 3.11 to 3.14; it is tried all the same.\n"
        )

    def test_names_the_one_that_lacks_what_makes_environments(self, machine: Machine) -> None:
        machine.has(fake3="3.10.1", fake3_13="3.13.0!")
        status, said, warned = machine.run("setup", *NAMES)
        assert (status, said) == (1, "")
        assert warned.startswith("fake3.13 cannot make virtual environments")

    def test_says_which_work_where_there_is_none(self, machine: Machine) -> None:
        machine.has(fake3="3.10.1")
        status, _, warned = machine.run("setup", *NAMES)
        assert status == 1
        assert "3.11 to 3.14 are known to work" in warned

    def test_knows_the_versions_that_the_package_declares(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        declared = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
        known = re.findall(
            r"^known='(3\.\d+) to (3\.\d+)'$", (ROOT / ".ci/setup").read_text("utf-8"), re.MULTILINE
        )
        assert known == [(declared[0], declared[-1])]
        assert project["requires-python"] == f">={declared[0]}"


class TestEach:
    def test_a_version_is_tested_once_and_one_that_is_not_here_is_named(self, machine: Machine) -> None:
        status, said, _ = machine.run("test-pythons", "fake3.9", "fake3.13")
        assert status == 0
        assert (
            said == "fake3.9: skipped, there is none here\nfake3.13: skipped, there is none here\ntested:\n"
        )
        machine.has(fake3_13="3.13.1")
        status, said, _ = machine.run("test-pythons", "fake3.9", "fake3.13")
        assert status == 7
        assert re.search(r"^ran: -m venv --clear .*/build/pythons/3\.13$", said, re.MULTILINE)
