"""From an empty directory to a report, as a new user goes: what it takes, and what is said when something is wrong."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.supervisor import free_port
from tests.conftest import scratch_directory
from tests.integration.llm.stub_provider import Answer, StubProvider
from tests.integration.simulator.conftest import RunningSimulator
from tests.observe import PATIENCE

ASSAY = (sys.executable, "-P", "-m", "app.cli")
MOST_STEPS = 3


class Newcomer:
    """Somebody with an empty directory and a provider's key; counts what they do."""

    def __init__(self, directory: Path, key: str) -> None:
        self.directory = directory
        port = free_port("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{port}"
        own = {
            "ASSAY_URL": self.url,
            "ASSAY_PORT": str(port),
            "LAB_KEY": key,
            "ASSAY_ENCRYPTION_KEYS": "ab" * 32,
        }
        others = {"DATABASE_URL", "REDIS_URL", "ASSAY_CONFIG"}
        self.environment = {name: value for name, value in os.environ.items() if name not in others} | own
        # As shells and make leave them: empty, and of another program by the name of a file.
        self.environment |= {"MAKEFLAGS": "", "OTHER": "x", "OTHER_FILE": "/no/such/file"}
        self.steps = 0

    def assay(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        self.steps += 1
        return subprocess.run(
            [*ASSAY, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            cwd=self.directory,
            env=self.environment,
        )

    @contextlib.contextmanager
    def up(self) -> Iterator[str]:
        """A running `assay up`; yields what it says until it is ready, its connections included."""
        self.steps += 1
        process = subprocess.Popen(
            [*ASSAY, "up"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.directory,
            env=self.environment,
        )
        try:
            assert process.stdout is not None
            said = ""
            while "Stop" not in said:
                line = process.stdout.readline()
                assert line, said
                said += line
            yield said
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch_directory() as made:
        yield made


def initialized(newcomer: Newcomer, url: str, *more: str) -> subprocess.CompletedProcess[str]:
    persona = ("--persona", "a blunt critic", "--trait", "A=low")
    server = ("--vllm", url, "--key-env", "LAB_KEY", "--model", "sim-faithful", "--judge", "sim-judge")
    return newcomer.assay("init", *server, *persona, *more)


def test_a_report_on_a_persona_of_ones_own_takes_three_commands_and_no_file(
    simulator: RunningSimulator, directory: Path
) -> None:
    newcomer = Newcomer(directory, "any")
    made = initialized(newcomer, f"{simulator.url}/v1")
    assert made.returncode == 0, made.stderr
    assert "✓ job.yaml: valid, 3 cells" in made.stderr
    assert (
        'models: [{model: "vllm/sim-faithful", max_tokens: 1024}]'
        in (newcomer.directory / "job.yaml").read_text()
    )
    assert "✓ vllm: key accepted" in made.stderr
    with newcomer.up() as said:
        assert "✓ vllm: key accepted" in said
        done = newcomer.assay("submit", "job.yaml", "--report", "report.html")
        assert done.returncode == 0, done.stderr
        assert newcomer.steps <= MOST_STEPS
        report = (directory / "report.html").read_text(encoding="utf-8")
        assert "vllm/sim-faithful" in report
        doctor = newcomer.assay("doctor", "--json")
        assert doctor.returncode == 0, doctor.stdout
        found = {one["what"]: one["words"] for one in json.loads(doctor.stdout)["data"]}
        assert found["vllm"] == "key accepted"
        assert found["service"] == f"{newcomer.url} is ready"


def test_a_wrong_key_is_told_by_every_command_with_what_to_do(
    simulator: RunningSimulator, directory: Path
) -> None:
    newcomer = Newcomer(directory, "wrong")
    told = "! vllm: vllm rejected the key. Set the key variable of vllm and restart the service."
    assert told in initialized(newcomer, f"{simulator.url}/p/openai-4o-tier-1/v1").stderr
    doctor = newcomer.assay("doctor")
    assert doctor.returncode == 1
    assert told in doctor.stdout
    assert f"! service: cannot reach {newcomer.url}" in doctor.stdout
    with newcomer.up() as said:
        assert told in said
        done = newcomer.assay("submit", "job.yaml", "--wait")
        assert done.returncode == 1
        assert "Job failed (invalid api key): vllm rejected the key." in done.stderr
        job = done.stdout.strip()
        assert (
            f"Set the key variable of vllm and restart the service.\nThen run: assay retry {job}"
            in done.stderr
        )
        assert json.loads(newcomer.assay("status", job, "--json").stdout)["usage"]["calls"] == 1


def test_what_is_wrong_is_refused_before_a_file_is_written(directory: Path) -> None:
    newcomer = Newcomer(directory, "any")
    for arguments, words in (
        ((), "choose a server: --openai, --anthropic or --vllm URL"),
        (("--openai", "--anthropic"), "choose one of"),
        (("--vllm", "http://127.0.0.1:9/v1"), "lists no models"),
        (("--vllm", "no url", "--model", "m"), "base_url: must be an http or https URL"),
        (("--openai", "--persona", "a critic"), "--trait DIMENSION=LEVEL"),
        (("--openai", "--persona", "a critic", "--trait", "A"), "'A' must have the form"),
        (
            ("--openai", "--persona", "a critic", "--trait", "A=lo"),
            "dimension 'A' has no level 'lo'",
        ),
    ):
        refused = newcomer.assay("init", *arguments)
        assert (refused.returncode, words in refused.stderr) == (3, True), refused.stderr
    assert list(directory.iterdir()) == []


async def test_a_server_that_loads_its_model_is_asked_again_later(directory: Path) -> None:
    loading = Answer.of_json({"error": {"message": "Loading model", "code": 503}}, 503)
    async with StubProvider(loading) as server:
        refused = await asyncio.to_thread(
            Newcomer(directory, "any").assay, "init", "--vllm", f"{server.url}/v1"
        )
    assert (refused.returncode, "may still load its model: try again" in refused.stderr) == (3, True)


def test_a_key_that_no_header_can_carry_is_not_told(directory: Path) -> None:
    newcomer = Newcomer(directory, "sk-SECRET\nx")
    refused = newcomer.assay("init", "--vllm", "http://127.0.0.1:9/v1", "--key-env", "LAB_KEY")
    assert (refused.returncode, "SECRET" in refused.stderr) == (3, False)
    assert "LAB_KEY: its key holds characters that no HTTP header can carry" in refused.stderr


def test_files_that_are_there_are_kept_unless_they_shall_be_replaced(directory: Path) -> None:
    newcomer = Newcomer(directory, "any")
    (directory / "job.yaml").write_text("mine")
    kept = newcomer.assay("init", "--openai")
    assert (kept.returncode, "job.yaml already exists; use --force to replace it" in kept.stderr) == (3, True)
    assert [path.name for path in directory.iterdir()] == ["job.yaml"]
    replaced = newcomer.assay("init", "--openai", "--force")
    assert replaced.returncode == 0, replaced.stderr
    assert "openai/gpt-6-luna" in (directory / "job.yaml").read_text()
