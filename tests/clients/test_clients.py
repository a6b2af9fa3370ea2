"""Tools that others wrote read our OpenAPI DOCUMENT, and clients that they make of it run a job: ``make test-clients``."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from generators.client_types import DOCUMENT, Json
from tests.e2e.stack import Stack

Outputs = list[dict[str, str]]

SOURCES = Path(__file__).parent
TOOLS = SOURCES.parents[1] / "build" / "clients"
GENERATOR = TOOLS / "openapi-python-client" / "bin"
UNREAD_BY_GENERATOR = {
    "GET /v1/jobs/{job_id}/exports/{format}",  # zip and JSON Lines
    "GET /v1/jobs/{job_id}/figures/{name}.{file_format}",  # pictures
    "GET /v1/schedules/{schedule_id}/figures/timeline.{file_format}",  # pictures
    "PATCH /v1/uploads/{upload_id}",  # tus's own type
    "POST /v1/annotations",  # CSV; JSON is read
    "POST /v1/bundles",  # zip
    "POST /v1/persona-sets",  # CSV and JSON Lines; JSON is read
}


@pytest.fixture(scope="session")
def node() -> Path:
    """A directory with the tools of package.json."""
    if shutil.which("node") is None or not (TOOLS / "node" / "node_modules").is_dir():
        pytest.skip("needs Node.js and make test-clients")
    return TOOLS / "node"


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_spectral_finds_nothing(node: Path) -> None:
    bin_ = node / "node_modules" / ".bin"
    told = run(
        *(bin_ / "spectral", "lint", DOCUMENT, "--ruleset", SOURCES / ".spectral.yaml"),
        *("--fail-severity", "hint"),
        cwd=node,
    )
    assert "No results" in told


def test_a_client_in_typescript_runs_a_job(node: Path, common_stack: Stack) -> None:
    bin_ = node / "node_modules" / ".bin"
    for name in ("run_job.ts", "tsconfig.json"):
        shutil.copy(SOURCES / name, node)
    # A field with a default may be left out: the tool takes it for one that is always there, unless told otherwise.
    options = ("--default-non-nullable", "false", "--array-length")
    run(bin_ / "openapi-typescript", DOCUMENT, *options, "--output", "schema.ts", cwd=node)
    run(bin_ / "tsc", cwd=node)
    told = run(
        "node", "--no-warnings", "run_job.js", cwd=node, ASSAY_URL=str(common_stack.api.base_url).rstrip("/")
    )
    done, refused = map(json.loads, told.splitlines())
    metric = common_stack.results(done["job"])["cells"][0]["metrics"]["acc_atom"]
    assert (done["acc_atom"], done["interval"]) == (metric["value"], metric.get("ci95"))
    assert refused == ["/tasks/0"]


@pytest.fixture(scope="session")
def generated(document: Path) -> Path:
    """Where the generated package is."""
    if not GENERATOR.is_dir():
        pytest.skip("needs make test-clients")
    target = document.parent / "generated"
    told = run(
        *(GENERATOR / "openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", target),
        cwd=document.parent,
        PATH=f"{GENERATOR}{os.pathsep}{os.environ['PATH']}",
    )
    warned = {
        line.split("parsing ")[1].split(" within")[0] for line in told.splitlines() if "parsing " in line
    }
    assert warned == UNREAD_BY_GENERATOR
    return target


def test_a_client_in_python_runs_a_job(generated: Path, common_stack: Stack) -> None:
    told = run(
        *(GENERATOR / "python", SOURCES / "run_job.py"),
        cwd=generated,
        PYTHONPATH=str(generated),
        ASSAY_URL=str(common_stack.api.base_url),
    )
    done = json.loads(told)
    metric = common_stack.results(done["job"])["cells"][0]["metrics"]["acc_atom"]
    assert done["acc_atom"] == metric["value"]
    assert done["refused"] == ["/tasks/0"]


@pytest.fixture(scope="session")
def cells(common_stack: Stack) -> list[Outputs]:
    """What a notebook's cells put out, each by its media types; the whole stands in build/clients/notebook.json."""
    python = TOOLS / "notebook" / "bin" / "python"
    if not python.is_file():
        pytest.skip("needs make test-clients")
    run(
        *(python, SOURCES / "run_notebook.py", SOURCES / "notebook.ipy", TOOLS / "notebook.json"),
        cwd=TOOLS,
        PYTHONPATH=str(SOURCES.parents[1]),
        ASSAY_URL=str(common_stack.api.base_url),
    )
    notebook = json.loads((TOOLS / "notebook.json").read_text("utf-8"))
    return [[whole(output) for output in cell["outputs"]] for cell in notebook["cells"]]


def whole(output: Json) -> dict[str, str]:
    """The media of an output, whose lines a notebook's file keeps apart."""
    media = output.get("data") or {"text/plain": output["text"]}
    return {name: "".join(text) for name, text in media.items()}


class TestNotebook:
    def test_waiting_shows_a_bar_that_changes_in_place(self, cells: list[Outputs]) -> None:
        (bar, status) = cells[1]
        assert "<progress value='4' max='4'>" in bar["text/html"]
        assert status["text/plain"] == "'completed'"

    def test_results_are_shown_as_a_table(self, cells: list[Outputs]) -> None:
        html = cells[2][0]["text/html"]
        assert "simulated" in html
        assert "<td>simulated/sim-faithful</td>" in html

    def test_frames_of_both_libraries(self, cells: list[Outputs]) -> None:
        frame = cells[3][0]["text/html"]  # of many columns, the first and the last
        assert "<th>model</th>" in frame
        assert re.search(r"<p>2 rows × \d+ columns</p>", frame)
        assert "shape: (" in cells[4][0]["text/html"]

    def test_a_figure_is_inline(self, cells: list[Outputs]) -> None:
        assert "<svg" in cells[5][0]["image/svg+xml"]

    def test_an_error_prints_its_fields(self, cells: list[Outputs]) -> None:
        told = cells[6][0]["text/plain"]
        assert "/personas/0: " in told
        assert "/tasks/0: " in told

    def test_the_other_client_waits_in_the_notebook_s_loop(self, cells: list[Outputs]) -> None:
        assert cells[7][-1]["text/plain"] == "True"
