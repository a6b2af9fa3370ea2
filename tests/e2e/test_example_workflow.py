"""The workflow of docs/examples, its steps run as a runner runs them, on a machine with a service of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from embedded.supervisor import free_port
from tests.conftest import scratch_directory
from tests.observe import PATIENCE

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
WORKFLOW: dict[str, Any] = yaml.safe_load((EXAMPLES / "github-actions.yaml").read_text("utf-8"))
STEPS: dict[str, str] = {
    step["name"]: step["run"] for step in WORKFLOW["jobs"]["gate"]["steps"] if "run" in step
}


class Runner:
    """Runs steps in a directory, each with what the ones before it have put out."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._port = str(free_port("127.0.0.1", 0))
        self._variables = {
            **{
                name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}
            },
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "RUNNER_TEMP": str(directory),
            "GITHUB_OUTPUT": str(directory / "outputs"),
            "ASSAY_PORT": self._port,
            "ASSAY_URL": "",
            "ASSAY_API_KEY": "",
        }
        self.groups: list[int] = []

    def run(self, step: str, **changes: str) -> subprocess.CompletedProcess[str]:
        script = STEPS[step].replace(":8321", f":{self._port}")
        process = subprocess.Popen(
            ["bash", "-e", "-c", script],
            cwd=self.directory,
            env=self._variables | {"ASSAY_URL": f"http://127.0.0.1:{self._port}"} | changes,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.groups.append(process.pid)
        output, errors = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(step, process.returncode, output, errors)

    def output(self, name: str) -> str:
        outputs: dict[str, str] = dict(
            re.findall(r"^(\w+)=(.*)$", (self.directory / "outputs").read_text(), re.MULTILINE)
        )
        return outputs[name]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with scratch_directory() as directory:
        (directory / "persona-gate.yaml").write_bytes((EXAMPLES / "persona-gate.yaml").read_bytes())
        runner = Runner(directory)
        try:
            started = runner.run("Start the service", ASSAY_URL="")
            assert started.returncode == 0, started.stderr + (directory / "assay.log").read_text()
            yield runner
        finally:
            os.killpg(runner.groups[0], signal.SIGTERM)


@pytest.fixture(scope="module")
def measured(runner: Runner) -> str:
    """The id of the job that the workflow has run."""
    measured = runner.run("Measure")
    assert measured.returncode == 0, measured.stderr
    return runner.output("job")


class TestWorkflow:
    def test_a_faithful_model_passes_and_leaves_report_and_checks(
        self, runner: Runner, measured: str
    ) -> None:
        done = runner.run("Gate", JOB=measured)
        assert (done.returncode, done.stderr) == (0, "")
        assert "gate: ✓ pass" in done.stdout
        (suite,) = ET.parse(runner.directory / "persona-gate.xml").getroot()
        assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "0")
        assert (runner.directory / "persona-report.html").stat().st_size > 10_000

    def test_a_job_that_does_not_exist_fails_it(self, runner: Runner) -> None:
        assert runner.run("Gate", JOB="job_none").returncode == 3

    def test_a_job_that_cannot_be_submitted_fails_it_with_the_line(self, runner: Runner) -> None:
        job = (EXAMPLES / "persona-gate.yaml").read_text("utf-8")
        (runner.directory / "persona-gate.yaml").write_text(job.replace("essay", "esay"))
        done = runner.run("Measure")
        assert done.returncode == 3
        assert "/tasks/0 (persona-gate.yaml, line 4)" in done.stderr
