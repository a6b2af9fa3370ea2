"""A release is complete, says what changed, and is the same each time."""

import os
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from persona_assay.version import VERSION
from tests.packaging.release import ROOT, notes, release

said = subprocess.run(["git", "log", "-1"], cwd=ROOT, capture_output=True, text=True, check=False)
of_a_commit = pytest.mark.skipif(said.returncode != 0, reason=f"no commit is checked out here: {said.stderr}")


@of_a_commit
def test_two_runs_give_the_same_files_whose_sums_are_listed(tmp_path: Path) -> None:
    for name in ("first", "second"):
        release(tmp_path / name)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("first", "second")
    )
    assert first == second
    lines = [line.split("  ") for line in first["SHA256SUMS"].decode().splitlines()]
    listed = {name: digest for digest, name in lines}
    assert listed == {name: sha256(data).hexdigest() for name, data in first.items() if name != "SHA256SUMS"}
    for distribution in ("persona_assay", "persona_assay_server"):
        assert {
            f"{distribution}-{VERSION}-py3-none-any.whl",
            f"{distribution}-{VERSION}.tar.gz",
        } <= first.keys()
    with tarfile.open(tmp_path / "first" / f"persona-assay-image-{VERSION}.tar") as archive:
        names = archive.getnames()
    assert {"Dockerfile", "docker-bake.hcl", "app/cli.py", "requirements-service.lock"} <= set(names)
    assert not [name for name in names if name.startswith("tests/") or name.endswith(".pyc")]


@of_a_commit
def test_what_is_not_committed_is_not_released(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.packaging.release", str(tmp_path / "release")],
        cwd=ROOT,
        env=os.environ | {"GIT_INDEX_FILE": str(tmp_path / "nothing is staged")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "commit first" in done.stderr
    assert not (tmp_path / "release").exists()


CHANGELOG = """# Changelog

## [Unreleased]

### Added

* what comes

## [0.2.0]

* what came

## [0.1.0]

* the first
"""


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("0.2.0", "# Persona Assay 0.2.0\n\n* what came\n"),
        ("0.3.0", "# Persona Assay 0.3.0\n\n### Added\n\n* what comes\n"),
    ],
)
def test_its_notes_are_the_section_of_its_version(version: str, text: str) -> None:
    assert notes(CHANGELOG, version) == text


def test_without_a_section_there_are_no_notes() -> None:
    with pytest.raises(ValueError, match="no section"):
        notes("# Changelog\n", "1.0.0")
