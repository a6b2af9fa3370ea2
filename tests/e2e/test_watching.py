"""Whoever waits for a job outlasts the API: it is killed and started again while programs watch."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from persona_assay import AssayClient
from persona_assay.types import JobDetail
from tests.e2e.stack import Json, Stack
from tests.observe import PATIENCE, eventually

ASSAY = (sys.executable, "-P", "-m", "app.cli")
BODY: Json = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": [0],
    "iterations": 2,
}


@contextmanager
def assay(stack: Stack, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on; it reads the job from standard input, if it reads one."""
    process = subprocess.Popen(
        [*ASSAY, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"ASSAY_URL": str(stack.api.base_url)},
    )
    with process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(BODY))
            process.stdin.close()
            process.stdin = None  # communicate() would write to it
            yield process
        finally:
            process.kill()


class Listener(threading.Thread):
    """Somebody who listens to a job's events."""

    def __init__(self, url: str, job_id: str) -> None:
        super().__init__(daemon=True)
        self._url, self._job_id = url, job_id
        self.heard: list[JobDetail] = []
        self.hears = threading.Event()

    def run(self) -> None:
        with AssayClient(self._url) as client:
            for job in client.events(self._job_id):
                self.heard.append(job)
                self.hears.set()


def killed_and_back(stack: Stack) -> None:
    former = stack.pid("api")
    stack.kill("api")
    stack.restarted("api", former)
    assert eventually(lambda: answers(stack))


def answers(stack: Stack) -> bool:
    try:
        return stack.api.get("/healthz").is_success
    except httpx2.TransportError:
        return False


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


class TestRestarts:
    def test_nobody_who_waits_notices_that_the_api_was_killed(self, stack: Stack) -> None:
        stack.simulate(
            latency_ms=5_000
        )  # calls on the wire when the job is paused are awaited before it goes on
        with assay(stack, "submit", "-", "--wait") as submit:
            job_id = first_line(submit)
            stack.act(job_id, "pause")  # so that it is not over before the API is
            stack.simulate(latency_ms=0)
            listener = Listener(str(stack.api.base_url), job_id)
            listener.start()
            assert listener.hears.wait(PATIENCE)
            with assay(stack, "watch", job_id, "--json") as watch:
                assert watch.stderr is not None
                assert watch.stderr.readline().startswith(job_id)
                killed_and_back(stack)
                stack.act(job_id, "resume")
                watched, _ = watch.communicate(timeout=PATIENCE)
            told, shown = submit.communicate(timeout=PATIENCE)
        assert (submit.returncode, watch.returncode) == (0, 0)
        assert told == ""
        assert "completed" in shown
        assert json.loads(watched)["status"] == "completed"
        listener.join(PATIENCE)
        assert listener.heard[-1]["status"] == "completed"
        assert all(one != other for one, other in zip(listener.heard, listener.heard[1:], strict=False))

    def test_a_job_that_is_cancelled_meanwhile_ends_the_wait_with_1(self, stack: Stack) -> None:
        stack.simulate(latency_ms=600_000)
        with assay(stack, "submit", "-", "--wait", "--json") as submit:
            assert submit.stderr is not None
            job_id = submit.stderr.readline().split()[0]
            killed_and_back(stack)
            stack.act(job_id, "cancel")
            told, _ = submit.communicate(timeout=PATIENCE)
        stack.simulate(latency_ms=0)
        assert submit.returncode == 1
        assert json.loads(told)["status"] == "cancelled"
