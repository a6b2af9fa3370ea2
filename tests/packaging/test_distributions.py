"""Both distributions as users get them: built, installed, run and uninstalled beside a package called `app`."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from persona_assay.version import VERSION
from tests.e2e.stack import Stack
from tests.packaging.environments import ROOT, Environment, build, said

# Fresh environments, whose code is not compiled yet, on a machine that may be busy.
MOST_PACKAGES = 15
MOST_BYTES = 40_000_000

THEIRS = """
[project]
name = "theirs"
version = "1"
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
packages = ["app", "workers"]
"""
WHOSE = """
import json, importlib.util, app, workers
ours = [name for name in ("embedded", "migrations", "simulator") if importlib.util.find_spec(name)]
print(json.dumps([app.OWNER, workers.OWNER, ours]))
"""
LOADED = """
import json, sys
from persona_assay.terminal import main
print(json.dumps(sorted({"httpx2", "rich.table", "yaml", "asyncio"} & sys.modules.keys())))
"""

SMALL_DEMO = """
from persona_assay_server import command_line
assay = command_line()
from app.terminal import demo_job
demo_job.DEMO_JOB |= {"personas": ["E-high"], "tasks": ["essay"], "instructions": [1]}
assay(["demo"])
"""


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """On a disk, as the server's environment is 670 MB: more than there may be room for in memory. All accounts can pass through it."""
    with tempfile.TemporaryDirectory(prefix="assay-tests-") as name:
        directory = Path(name)
        directory.chmod(0o711)
        yield directory


@pytest.fixture(scope="module")
def client_wheel(scratch: Path) -> Path:
    return build(ROOT / "packages" / "client", scratch / "wheels")


@pytest.fixture(scope="module")
def server_wheel(scratch: Path, client_wheel: Path) -> Path:
    return build(ROOT, client_wheel.parent)


@pytest.fixture(scope="module")
def client(scratch: Path, client_wheel: Path) -> Environment:
    environment = Environment.make(scratch / "client")
    environment.install(client_wheel)
    return environment


class TestClient:
    def test_is_light_and_brings_one_name(self, client: Environment) -> None:
        found = client.installed()
        assert "persona-assay" in found
        assert len(found) <= MOST_PACKAGES, found
        assert client.bytes() <= MOST_BYTES
        assert client.top_level("persona-assay") == {"persona_assay"}

    def test_its_archive_of_sources_builds_the_same_wheel(self, scratch: Path, client_wheel: Path) -> None:
        sources = scratch / "sources"
        archive = build(ROOT / "packages" / "client", sources, target="sdist")
        shutil.unpack_archive(archive, sources, filter="data")
        wheel = build(sources / f"persona_assay-{VERSION}", scratch / "wheels-from-sources")
        assert wheel.read_bytes() == client_wheel.read_bytes()

    def test_its_command_line_reads_what_a_service_has(
        self, client: Environment, common_stack: Stack, tmp_path: Path
    ) -> None:
        url = str(common_stack.api.base_url)
        job = tmp_path / "job.yaml"
        job.write_text(
            "personas: [E-high]\ntasks: [essay]\nmodels: [simulated/sim-faithful]\n"
            "judges: [simulated/sim-judge]\ninstructions: [1]\niterations: 1\n"
        )
        assay = client.script("assay")
        id_ = said(assay, "submit", job, "--wait", cwd=tmp_path, ASSAY_URL=url).strip()
        assert "simulated/sim-faithful" in said(assay, "results", id_, cwd=tmp_path, ASSAY_URL=url)
        gate = [str(assay), "gate", id_, "-t", "acc_atom>=0.5"]
        done = subprocess.run(
            gate, env=os.environ | {"ASSAY_URL": url}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, "inconclusive" in done.stdout) == (2, True), (
            done.stderr
        )  # one persona has no interval
        assert said(assay, "report", id_, "-o", "-", cwd=tmp_path, ASSAY_URL=url).startswith(
            "<!doctype html>"
        )

    def test_says_what_runs_a_service_where_nothing_here_does(
        self, client: Environment, tmp_path: Path
    ) -> None:
        done = subprocess.run(
            [client.script("assay"), "up"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 3
        assert "pip install persona-assay-server" in done.stderr
        listed = said(client.script("assay"), "--help", cwd=tmp_path)
        assert "gate" in listed
        assert "migrate" not in listed

    def test_starts_without_what_single_commands_need(self, client: Environment, tmp_path: Path) -> None:
        assert client.evaluate(LOADED, tmp_path) == []

    def test_is_of_the_version_that_the_code_says(self, client: Environment, tmp_path: Path) -> None:
        assert said(client.script("assay"), "--version", cwd=tmp_path).endswith(f" {VERSION}\n")


class TestServer:
    def test_works_beside_a_package_called_app_and_leaves_it_alone(
        self, scratch: Path, client_wheel: Path, server_wheel: Path
    ) -> None:
        project = scratch / "their-project"
        for package in ("app", "workers"):
            (project / package).mkdir(parents=True)
            (project / package / "__init__.py").write_text("OWNER = 'they'\n")
        (project / "pyproject.toml").write_text(THEIRS)
        (project / "matplotlib.py").write_text("raise ImportError('this is theirs')\n")
        environment = Environment.make(scratch / "server")
        environment.install(build(project, scratch / "their-wheels"))
        before = files(environment.site_packages)

        environment.install(client_wheel, server_wheel)
        assert environment.top_level("persona-assay-server") == {"persona_assay_server"}
        assert environment.evaluate(WHOSE, scratch) == ["they", "they", []]

        # In their checkout, whose modules the processes of the service must not find either.
        temporary = scratch / "temporary"
        temporary.mkdir(mode=0o711)
        python = environment.script("python")
        shown = said(python, "-P", "-c", SMALL_DEMO, cwd=project, TMPDIR=str(temporary))
        assert "simulated/sim-drifting" in shown
        assert (project / "assay-demo-report.html").stat().st_size > 10_000
        assert list(temporary.iterdir()) == []
        for script in ("assay", "persona-assay-server"):
            assert "--output" in said(environment.script(script), "demo", "--help", cwd=project)
        assert environment.evaluate(WHOSE, scratch) == ["they", "they", []]

        environment.uninstall("persona-assay", "persona-assay-server")
        left = files(environment.site_packages)
        assert before.items() <= left.items()
        assert not [path for path in left if path.startswith("persona_assay")]
        assert environment.evaluate(WHOSE, scratch) == ["they", "they", []]


def files(directory: Path) -> dict[str, bytes]:
    """The contents of all sources and metadata below a directory, by their paths."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
