"""Files that the tools wrote themselves, each by its own program in an environment of its own (`make test-formats`)."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import scratch_directory

PROGRAMS = Path(__file__).parent / "tools"
BUILT = Path(__file__).parents[2] / "build" / "formats"
PYTHON = BUILT / "tools" / "bin" / "python"
PROMPTFOO = BUILT / "node" / "node_modules" / ".bin" / "promptfoo"
SECONDS = 300

Write = Callable[[str], Path]


def run(*command: str | Path, cwd: Path, **environment: str) -> None:
    own = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(cwd / "cache"), "HOME": str(cwd), **environment}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=os.environ | own,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.fixture(scope="session")
def written() -> Iterator[Write]:
    """The directory with what a tool wrote, by the tool's name."""
    if not PYTHON.exists():
        pytest.skip("needs make test-formats")
    with scratch_directory() as directory:

        def write(tool: str) -> Path:
            own = directory / tool
            if not own.exists():
                own.mkdir()
                run(PYTHON, PROGRAMS / f"write_{tool}.py", own, cwd=own)
            return own

        yield write


@pytest.fixture(scope="session")
def evaluated() -> Iterator[Path]:
    """A configuration of promptfoo, and its outputs."""
    if shutil.which("node") is None or not PROMPTFOO.exists():
        pytest.skip("needs Node.js and make test-formats")
    with scratch_directory() as directory:
        for name in ("promptfooconfig.yaml", "provider.cjs"):
            shutil.copy(PROGRAMS / name, directory)
        outputs = [word for name in ("out.json", "out.jsonl", "out.yaml", "out.csv") for word in ("-o", name)]
        options = ("--no-cache", "--no-write", "--no-progress-bar", *outputs)
        quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
        quiet |= {"PROMPTFOO_CONFIG_DIR": str(directory / "settings"), "PROMPTFOO_FAILED_TEST_EXIT_CODE": "0"}
        run(PROMPTFOO, "eval", *options, cwd=directory, **quiet)
        yield directory
