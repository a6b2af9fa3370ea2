"""Jobs that only judge: sentences that nobody has seen, their prompts, and a service whose judge is the stub server."""

import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import yaml

from app.domain.instruments.prompts import scoring_prompt
from app.domain.instruments.task import items_for
from app.instruments.loader import load_atomic
from benchmarks import stub_server
from benchmarks.stub_server import Account
from embedded.services import StackConfig
from embedded.supervisor import Supervisor

PERSONA, DIMENSION, TASK = "E-high", "E", "social_media_post"
JUDGE = "stub/judge"
POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Given:
    """So many sentences, which no other salt has, so that nobody has an answer already, in texts of some of them."""

    calls: int
    salt: str
    sentences_a_text: int = 20

    @cached_property
    def sentences(self) -> Sequence[str]:
        """The sentences."""
        return [
            f"On day {n} of journey {self.salt} I danced until four and met a dozen strangers."
            for n in range(self.calls)
        ]

    @cached_property
    def prompts(self) -> Sequence[str]:
        """The atomic paper's scoring prompt for each."""
        instrument = load_atomic()
        task, dimension = instrument.tasks[TASK], instrument.dimensions[DIMENSION]
        (item,) = items_for(task, (dimension,))
        return [scoring_prompt(task, dimension, item, sentence) for sentence in self.sentences]

    @property
    def account(self) -> Account:
        """What the server is asked for by whoever leaves nothing out and asks nothing twice."""
        return Account.of(self.prompts)

    def job(self) -> dict[str, Any]:
        """A job of this service that has the sentences judged."""
        starts = range(0, self.calls, self.sentences_a_text)
        texts = [" ".join(self.sentences[start : start + self.sentences_a_text]) for start in starts]
        shared = {"persona": PERSONA, "task": TASK, "model": "given"}
        return {
            "personas": [PERSONA],
            "tasks": [TASK],
            "responses": [shared | {"text": text} for text in texts],
            "judges": [JUDGE],
        }

    def write(self, path: Path) -> None:
        """The prompts as JSON Lines, with the score that the server gives."""
        lines = [json.dumps({"prompt": prompt, "expected": stub_server.ANSWER}) for prompt in self.prompts]
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")


class JobFailedError(Exception):
    """A job came to another end than its completion."""


def run_job(api: httpx2.Client, given: Given, seconds: float) -> dict[str, Any]:
    """A job as it is when it is over, after a POST and polls.

    Raises:
        JobFailedError: If it is not completed, or not within so many seconds.
    """
    path = api.post("/v1/jobs", json=given.job()).raise_for_status().headers["location"]
    deadline = time.monotonic() + seconds
    while True:
        job: dict[str, Any] = api.get(path).raise_for_status().json()
        if job["status"] == "completed":
            return job
        if job["status"] in {"failed", "paused", "cancelled"} or time.monotonic() > deadline:
            raise JobFailedError(f"{job['status']}: {job['error']}")
        time.sleep(POLL_SECONDS)


@contextmanager
def judging_stack(
    url: str,
    *,
    workers: int,
    in_flight: int,
    limits: Mapping[str, float] | None = None,
    data_dir: Path | None = None,
) -> Iterator[Supervisor]:
    """The service, running, with a stub server as its only provider.

    Args:
        url: The server's base URL.
        workers: Worker processes.
        in_flight: Calls at once of each.
        limits: The operator's limits of the judge.
        data_dir: Where the databases lie; where temporary files do by default.
    """
    connection, _, model = JUDGE.partition("/")
    offered = {"kind": "openai", "base_url": url, "models": [model], "limits": dict(limits or {})}
    with tempfile.TemporaryDirectory(prefix="assay-bench-", dir=data_dir) as name, ExitStack() as stack:
        directory = Path(name)
        directory.chmod(0o711)  # passable: Postgres may have to run as another account
        operators = directory / "assay.yaml"
        operators.write_text(yaml.safe_dump({"connections": {connection: offered}}), encoding="utf-8")
        variables = {"ASSAY_CONFIG": str(operators), "ASSAY_MAX_IN_FLIGHT": str(in_flight)}
        stack.enter_context(_environment(variables))
        config = StackConfig(
            host="127.0.0.1", port=0, data_dir=directory / "data", workers=workers, simulator=False
        )
        yield stack.enter_context(Supervisor(config))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
