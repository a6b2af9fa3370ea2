"""Who makes the calls: this service, and what users would pick, each with the CPU time that it takes."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from string import Template
from typing import Protocol

import httpx2
import psycopg

from benchmarks.judging import Given, JobFailedError, judging_stack, run_job
from benchmarks.processes import ProcessMeter
from embedded.postgres import EmbeddedPostgres
from embedded.supervisor import Supervisor
from embedded.valkey import EmbeddedValkey

PROGRAMS = Path(__file__).parent / "programs"
INTERPRETER = Path("build/peers/bin/python")
"""That of the environment in which `make bench-peers` installs the peers."""
RUN_SECONDS = 600.0
"""A run that takes longer is given up."""
POLL_SECONDS = 0.2
STAY_HOME = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_EVALUATE_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "OPENAI_API_KEY": "none",
}
"""Nobody calls home, downloads anything or finds a key."""

Parts = dict[str, float]
"""CPU seconds, user and system, by process."""


class NotMeasuredError(Exception):
    """A tool is not installed, or does not run."""


class Tool(Protocol):
    """Who makes the calls."""

    def run(self, given: Given) -> Parts:
        """Has every sentence judged, and every answer recorded.

        Raises:
            NotMeasuredError: If it can't.
        """
        ...


def _python() -> str:
    """The peers' interpreter; this one where they are not installed."""
    return str(INTERPRETER.absolute()) if INTERPRETER.exists() else sys.executable


def _need_peers() -> None:
    if not INTERPRETER.exists():
        raise NotMeasuredError("not installed: `make bench-peers` does that")


class Program:
    """A program of the peers' that is started for each run; what it takes to start is in what it takes.

    Args:
        name: Its file.
        url: The judge's base URL.
        in_flight: Calls at once.
        arguments: What it is told besides.
        ours: Whether it runs in this service's own environment, which has what it needs.
    """

    def __init__(
        self, name: str, url: str, in_flight: int, *, arguments: Sequence[str] = (), ours: bool = False
    ) -> None:
        self._name, self._arguments, self._ours = name, arguments, ours
        self._url, self._in_flight = url, in_flight

    def run(self, given: Given) -> Parts:
        """As :class:`Tool` has it."""
        if not self._ours:
            _need_peers()
        with tempfile.TemporaryDirectory(prefix="assay-peer-") as name:
            directory = Path(name)
            calls, output = directory / "calls.jsonl", directory / "output"
            given.write(calls)
            output.mkdir()
            return {"program": run_measured(self._command(calls, output), directory)}

    def _command(self, calls: Path, output: Path) -> list[str]:
        program = (sys.executable if self._ours else _python(), str(PROGRAMS / self._name))
        return [*program, str(calls), str(output), self._url, str(self._in_flight), *self._arguments]


class LmEval(Program):
    """lm-evaluation-harness by its command line, with a task of one's own."""

    def __init__(self, url: str, in_flight: int) -> None:
        super().__init__("with_lm_eval.yaml", url, in_flight)

    def _command(self, calls: Path, output: Path) -> list[str]:
        task = Template((PROGRAMS / self._name).read_text("utf-8"))
        tasks = calls.with_name("tasks")
        tasks.mkdir()
        (tasks / self._name).write_text(task.safe_substitute(CALLS=calls), encoding="utf-8")
        model = f"model=judge,base_url={self._url}/chat/completions,num_concurrent={self._in_flight}"
        return [
            *(_python(), "-m", "lm_eval", "run", "--model", "local-chat-completions", "--model_args", model),
            *("--apply_chat_template", "--include_path", str(tasks), "--tasks", "judged"),
            *("--log_samples", "--output_path", str(output)),
        ]


def run_measured(
    command: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None
) -> float:
    """CPU seconds of a command and all its children.

    Raises:
        NotMeasuredError: If it fails or takes too long.
    """
    before = _children_seconds()
    variables = {**os.environ, **STAY_HOME, "HF_HOME": str(directory / "home"), **(environment or {})}
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env=variables,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NotMeasuredError(f"not done in {RUN_SECONDS:g} s") from error
    if done.returncode:
        raise NotMeasuredError(f"exit status {done.returncode}: {done.stderr[-500:]}")
    return _children_seconds() - before


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Service:
    """This service, which is sent a job with texts of its own, so that it only judges."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._meter = ProcessMeter(supervisor.pids())
        self._api = httpx2.Client(base_url=supervisor.urls.api, timeout=60)

    def run(self, given: Given) -> Parts:
        """As :class:`Tool` has it; from before the POST until the job is over, databases included."""
        before = self._meter.cpu_seconds()
        try:
            run_job(self._api, given, RUN_SECONDS)
        except JobFailedError as error:
            raise NotMeasuredError(str(error)) from error
        return {name: used - before[name] for name, used in self._meter.cpu_seconds().items()}


@contextmanager
def service(url: str, in_flight: int, data_dir: Path | None = None, *, workers: int = 1) -> Iterator[Service]:
    """The service, running."""
    with judging_stack(url, workers=workers, in_flight=in_flight, data_dir=data_dir) as supervisor:
        yield Service(supervisor)


class CeleryWithOrm:
    """A Celery worker on databases of its own, to which a program sends a task for each call."""

    def __init__(
        self, variables: Mapping[str, str], database: str, pids: Mapping[str, int], scratch: Path
    ) -> None:
        self._variables, self._scratch = variables, scratch
        self._meter = ProcessMeter(pids)
        self._database = database.replace("postgresql+psycopg://", "postgresql://", 1)
        self._rows = 0

    def run(self, given: Given) -> Parts:
        """As :class:`Tool` has it; from before the first message until the last row."""
        calls = self._scratch / "calls.jsonl"
        given.write(calls)
        before = self._meter.cpu_seconds()
        command = [_python(), str(PROGRAMS / "with_celery.py"), str(calls)]
        sent = run_measured(command, self._scratch, self._variables)
        self._rows += given.calls
        deadline = time.monotonic() + RUN_SECONDS
        with psycopg.connect(self._database, autocommit=True) as connection:
            while connection.execute("SELECT count(*) FROM peer_verdicts").fetchone() != (self._rows,):
                if time.monotonic() > deadline:
                    raise NotMeasuredError(f"rows are missing after {RUN_SECONDS:g} s")
                time.sleep(POLL_SECONDS)
        used = self._meter.cpu_seconds()
        return {name: used[name] - before[name] for name in used} | {"publisher": sent}


@contextmanager
def celery_with_orm(url: str, in_flight: int, data_dir: Path | None = None) -> Iterator[CeleryWithOrm]:
    """The worker, running.

    Raises:
        NotMeasuredError: If the peers are not installed.
    """
    _need_peers()
    with tempfile.TemporaryDirectory(prefix="assay-peer-", dir=data_dir) as name, ExitStack() as stack:
        scratch = Path(name)
        scratch.chmod(0o711)
        postgres = stack.enter_context(EmbeddedPostgres(scratch / "postgres"))
        valkey = stack.enter_context(EmbeddedValkey(scratch / "valkey"))
        variables = {
            "PEER_BROKER": valkey.broker_url(),
            "PEER_DATABASE": postgres.url(),
            "PEER_BASE_URL": url,
            "PEER_IN_FLIGHT": str(in_flight),
        }
        command = [
            *(_python(), "-m", "celery", "-A", "with_celery", "worker", "-l", "WARNING"),
            *("--pool", "threads", "--concurrency", str(in_flight), "--without-gossip", "--without-mingle"),
        ]
        log = stack.enter_context((scratch / "worker.log").open("wb"))
        worker = stack.enter_context(
            subprocess.Popen(
                command, cwd=PROGRAMS, env=os.environ | STAY_HOME | variables, stderr=log, stdout=log
            )
        )
        stack.callback(worker.terminate)
        pids = {"worker": worker.pid, "postgres": _pid(postgres), "valkey": _pid(valkey)}
        yield CeleryWithOrm(variables, postgres.url(), pids, scratch)


def _pid(server: EmbeddedPostgres | EmbeddedValkey) -> int:
    pid = server.process.pid
    assert pid is not None
    return pid
