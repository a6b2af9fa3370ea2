"""Environments that users would make: built, filled and emptied by uv, as it is set up for this checkout."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
UV = '. .ci/uv-settings && exec .venv/bin/uv "$@"'
"""uv with what `make setup` tells it of mirrors and certificates."""


def uv(*arguments: str | Path) -> str:
    """What uv says, which has to succeed."""
    return said("sh", "-c", UV, "uv", *arguments, cwd=ROOT)


def said(*command: str | Path, cwd: Path, **variables: str) -> str:
    """What a command prints, which has to succeed.

    It knows nothing of this checkout but what its arguments say. What it compiles stays: the service's processes start one after the other.
    """
    ours = {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE"}
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(project: Path, into: Path, target: str = "wheel") -> Path:
    """Build a project's wheel, or another target, with the locked hatchling; return its path."""
    before = set(into.iterdir()) if into.exists() else set()
    said(sys.executable, "-P", "-m", "hatchling", "build", "-t", target, "-d", into, cwd=project)
    (built,) = set(into.iterdir()) - before
    return built


@dataclass(frozen=True)
class Environment:
    """A virtual environment without pip.

    Attributes:
        path: Where it is.
    """

    path: Path

    @classmethod
    def make(cls, path: Path) -> "Environment":
        """A new one, with this Python."""
        uv("venv", "--quiet", "--python", sys.executable, path)
        return cls(path)

    @property
    def site_packages(self) -> Path:
        """Where packages are installed."""
        (found,) = self.path.glob("lib/python*/site-packages")
        return found

    def script(self, name: str) -> Path:
        """A command that is installed."""
        return self.path / "bin" / name

    def install(self, *wheels: Path) -> None:
        """Installs wheels with what they need, in the versions that are locked."""
        uv(
            "pip",
            "install",
            "--quiet",
            "--python",
            self.script("python"),
            "--constraint",
            "requirements.lock",
            *wheels,
        )

    def uninstall(self, *names: str) -> None:
        """Uninstalls distributions."""
        uv("pip", "uninstall", "--quiet", "--python", self.script("python"), *names)

    def installed(self) -> set[str]:
        """The names of the distributions."""
        return {found.name for found in distributions(path=[str(self.site_packages)])}

    def top_level(self, distribution: str) -> set[str]:
        """The names beside others' packages that a distribution brings; its metadata is not one."""
        (found,) = distributions(name=distribution, path=[str(self.site_packages)])
        tops = {file.parts[0] for file in found.files or ()}
        return {top for top in tops if not top.endswith(".dist-info") and top != ".."}

    def bytes(self) -> int:
        """How much lies in it, as it was installed."""
        return sum(
            path.stat().st_size
            for path in self.site_packages.rglob("*")
            if path.suffix != ".pyc" and path.is_file()
        )

    def evaluate(self, program: str, cwd: Path) -> Any:
        """What a program prints as JSON."""
        return json.loads(said(self.script("python"), "-c", program, cwd=cwd))
