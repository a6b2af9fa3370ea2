"""The command line against the real stack: Postgres, Valkey, the API, a worker and the simulated provider."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import scratch_directory
from tests.observe import PATIENCE, alive, descendants, eventually

ASSAY = (sys.executable, "-P", "-m", "app.cli")
JOB = """
name: small
personas: [E-high, E-low]
tasks: [essay]
models: [simulated/sim-faithful]
judges: [simulated/sim-judge]
instructions: [1]
iterations: 2
"""
LONG_JOB = JOB.replace("iterations: 2", "iterations: 500")
SMALL_DEMO = """
from app.terminal import demo_job
demo_job.DEMO_JOB |= {"personas": ["E-high", "E-low"], "instructions": [1]}
from app.cli import main
main()
"""


@dataclass(frozen=True)
class Stack:
    """A running `assay up`."""

    url: str
    data_dir: Path

    def assay(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a command against it."""
        return subprocess.run(
            [*ASSAY, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=os.environ | {"ASSAY_URL": self.url},
        )


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with scratch_directory() as directory:
        command = [*ASSAY, "up", "--port", "0", "--data-dir", str(directory / "data"), "--json"]
        up = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=without_databases())
        try:
            assert up.stdout is not None
            ready = ""
            while not ready.endswith("}\n"):
                line = up.stdout.readline()
                assert line, "assay up ended before it was ready"
                ready += line
            children = descendants(up.pid)
            yield Stack(json.loads(ready)["url"], directory / "data")
            up.send_signal(signal.SIGINT)
            assert up.wait(PATIENCE) == 0
            assert eventually(lambda: not any(map(alive, children)))
        finally:
            up.kill()
            up.wait()
            assert up.stdout is not None
            up.stdout.close()


def without_databases() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}


@pytest.fixture(scope="module")
def finished(stack: Stack) -> str:
    """The id of a job that has run to its end."""
    done = stack.assay("submit", "-", "--wait", stdin=JOB)
    assert re.search(r"^About \d+ calls$", done.stderr, re.MULTILINE)
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stderr
    return done.stdout.strip()


class TestBrowsing:
    def test_what_a_job_can_name_is_listed(self, stack: Stack) -> None:
        for command, shown in (
            (("models",), ("simulated-anthropic", "sim-drifting")),
            (("personas",), ("big-five", "15", "personagym-50")),
            (("personas", "big-five"), ("A-low", "disagreeable person")),
            (("tasks",), ("social_media_post", "toxicity_control", "agreeableness")),
        ):
            done = stack.assay(*command)
            assert done.returncode == 0, done.stderr
            assert [words for words in shown if words not in done.stdout] == []
            assert json.loads(stack.assay(*command, "--json").stdout)

    def test_responses_are_shown_sentence_by_sentence_with_their_scores(
        self, stack: Stack, finished: str
    ) -> None:
        options = ("responses", finished, "--persona", "E-low", "--limit", "1")
        (response,) = json.loads(stack.assay(*options, "--json").stdout)["data"]
        done = stack.assay(*options)
        assert done.returncode == 0, done.stderr
        assert "simulated/sim-faithful · E-low · essay · run 1" in done.stdout
        assert "introverted person · low in extraversion (introverted)" in done.stdout
        assert "More responses: use --limit" in done.stdout
        shown = " ".join(done.stdout.split())  # long sentences are wrapped
        for unit in response["units"]:
            (verdict,) = unit["verdicts"]
            score = "–" if verdict["score"] is None else verdict["score"]
            assert f"{score} {' '.join(unit['text'].split()[:5])}" in shown

    def test_no_response_that_matches_is_said(self, stack: Stack, finished: str) -> None:
        assert stack.assay("responses", finished, "--suspicious").stdout == "No responses match.\n"

    def test_a_jobs_page_is_opened_only_if_there_is_one(
        self, stack: Stack, finished: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        browser, opened = tmp_path / "xdg-open", tmp_path / "opened"
        browser.write_text(f'#!/bin/sh\necho "$1" >> {opened}\n')
        browser.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        page = f"{stack.url}/jobs/{finished}\n"
        assert stack.assay("open", finished).stdout == page
        assert eventually(lambda: opened.exists() and opened.read_text() == page)
        missing = stack.assay("open", "job_none")
        assert (missing.returncode, missing.stdout) == (3, "")
        assert opened.read_text() == page


class TestJobs:
    def test_a_plan_is_what_the_job_then_takes(self, stack: Stack, finished: str) -> None:
        plan = json.loads(stack.assay("plan", "-", "--json", stdin=JOB).stdout)
        job = json.loads(stack.assay("watch", finished, "--json").stdout)
        # 2 personas × the essay context of their dimension × 2 runs
        assert plan["responses"] == job["progress"]["generation"]["succeeded"] == 2 * 1 * 2
        assert plan["cells"] == 2

    def test_results_are_tables_that_say_that_they_are_simulated(self, stack: Stack, finished: str) -> None:
        done = stack.assay("results", finished)
        assert done.returncode == 0
        assert "SIMULATED" in done.stdout
        assert "simulated/sim-faithful" in done.stdout
        assert "high" in done.stdout
        assert "neutral" not in done.stdout

    @pytest.mark.parametrize(
        ("format_", "start"),
        [("html", b"<!doctype html>"), ("json", b"{"), ("csv", b""), ("jsonl", b"{"), ("parquet", b"PAR1")],
    )
    def test_every_report_can_be_saved(
        self, stack: Stack, finished: str, tmp_path: Path, format_: str, start: bytes
    ) -> None:
        path = tmp_path / f"report.{format_}"
        done = stack.assay("report", finished, "--format", format_, "-o", str(path))
        assert done.returncode == 0, done.stderr
        assert path.read_bytes()[: len(start)].lower() == start.lower()
        assert path.stat().st_size > 100

    def test_a_job_can_be_paused_resumed_and_cancelled(self, stack: Stack) -> None:
        job = stack.assay("submit", "-", stdin=LONG_JOB).stdout.strip()
        assert stack.assay("pause", job).stdout == f"{job} is paused\n"
        assert job in stack.assay("jobs", "--status", "paused").stdout
        assert stack.assay("resume", job).returncode == 0
        assert stack.assay("cancel", job).returncode == 0
        watched = stack.assay("watch", job)
        assert watched.returncode == 1
        assert "cancelled" in watched.stderr

    def test_what_is_wrong_with_a_job_is_told_by_the_field(self, stack: Stack) -> None:
        done = stack.assay("submit", "-", stdin=JOB.replace("essay", "esay"))
        assert done.returncode == 3
        assert "/tasks/0" in done.stderr

    def test_an_unknown_job_is_told(self, stack: Stack) -> None:
        done = stack.assay("results", "job_none")
        assert done.returncode == 3
        assert "job not found" in done.stderr


@pytest.mark.slow
class TestDemo:
    def test_runs_shows_and_leaves_nothing_but_the_report(self, tmp_path: Path) -> None:
        report = tmp_path / "report.html"
        temporary = tmp_path / "temporary"
        temporary.mkdir(mode=0o711)
        done = subprocess.run(
            [sys.executable, "-P", "-c", SMALL_DEMO, "demo", "-o", str(report)],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=os.environ | {"TMPDIR": str(temporary)},
        )
        assert done.returncode == 0, done.stderr
        assert "simulated/sim-faithful" in done.stdout
        assert "simulated/sim-drifting" in done.stdout
        assert f"HTML report: {report}" in done.stderr
        assert report.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
        assert list(temporary.iterdir()) == []

    def test_leaves_nothing_when_it_is_interrupted(self, tmp_path: Path) -> None:
        temporary = tmp_path / "temporary"
        temporary.mkdir(mode=0o711)
        demo = subprocess.Popen(
            [*ASSAY, "demo", "-o", str(tmp_path / "report.html")],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(temporary)},
            # A test that runs in a shell's background would hand its deafness on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one thread here
        )
        with demo:
            assert demo.stderr is not None
            for line in demo.stderr:
                if line.startswith("generation"):
                    break
            children = descendants(demo.pid)
            demo.send_signal(signal.SIGINT)
            demo.stderr.read()
            assert demo.wait(PATIENCE) == 130
        assert len(children) >= 5  # Postgres, Valkey, API, worker, sweeper, simulator
        assert not any(map(alive, children))
        assert list(temporary.iterdir()) == []
        assert not (tmp_path / "report.html").exists()
