"""The examples of the documents, run as they stand; the jobs in them, planned."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.service import Service

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "docs" / "how-to" / "python.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


def blocks(page: Path, language: str) -> list[str]:
    """The page's blocks of code in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def jobs_of(page: Path) -> list[dict[str, Any]]:
    """The jobs in the page, with simulated models in place of a provider's."""
    documents = [
        *map(yaml.safe_load, blocks(page, "yaml")),
        *(json.loads(text) for text in blocks(page, "json")),
    ]
    jobs = [each for each in documents if isinstance(each, dict) and {"personas", "tasks"} <= each.keys()]
    written = json.dumps(jobs).replace("openai/gpt-6-luna", "simulated/sim-judge")
    simulated: list[dict[str, Any]] = json.loads(written)
    return simulated


JOBS = [(page.relative_to(ROOT).as_posix(), job) for page in PAGES for job in jobs_of(page)]


@pytest.mark.parametrize(("page", "job"), JOBS, ids=[page for page, _ in JOBS])
def test_a_job_can_be_submitted(stack: Service, page: str, job: dict[str, Any]) -> None:
    planned = stack.http.post("/v1/jobs/plan", json=job)
    assert planned.status_code == 200, (page, planned.text)


TOLD = (
    r"calls, 0.0 dollars.*E-high [01]\.\d+ .*n = .*(pass|inconclusive) \[.*422 invalid \[\('/tasks/0'",
    r"completed (\d+)/\1\n[01]\.\d+",
    r"persona +acc_atom +acc_atom_n\n0 ",
)


def test_the_programs_do_what_they_say(stack: Service, tmp_path: Path) -> None:
    for example, told in zip(blocks(CLIENT, "python"), TOLD, strict=True):  # the last reads the job before
        done = _run([sys.executable, "-c", example], stack, tmp_path)
        assert re.search(told, done, re.DOTALL), done


def test_the_tutorial_goes_as_it_says(stack: Service, tmp_path: Path) -> None:
    job = blocks(TUTORIAL, "yaml")[0].replace("iterations: 2", "iterations: 1")  # half of the calls suffice
    (tmp_path / "job.yaml").write_text(job)
    steps = [block for block in blocks(TUTORIAL, "sh") if not block.startswith("make up")]
    told = _run(["bash", "-euc", "\n".join(steps)], stack, tmp_path)
    drifting, faithful = (
        [float(figure) for figure in re.findall(r"\d\.\d\d", line)]
        for line in re.findall(
            r"^simulated/sim-(?:drifting|faithful) .*(?:\d\.\d\d +){4}\d\.\d\d *$", told, re.MULTILINE
        )
    )
    assert faithful[2] - drifting[2] > 0.1, "ACC_atom tells the two apart, as the tutorial says"
    for file in ("report.html", "verdicts.csv"):
        assert (tmp_path / file).stat().st_size > 10_000


def _run(command: list[str], stack: Service, directory: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        env={"ASSAY_URL": stack.url, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1"},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
