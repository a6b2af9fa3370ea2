"""A tenant that does its worst, in a process of its own, beside another tenant's jobs and polls."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from threading import Event, Lock, Thread

import httpx2
import psutil  # type: ignore[import-untyped] # it comes without types
import psycopg
import pytest
import yaml

from app.domain.keys.api_key import Scope
from app.domain.providers.model import Usage
from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER, KeyMaker, bearer
from tests.api.service import Service
from tests.api.test_answers import CHARACTERS, FILL, MEBIBYTE, TEXTS, UnreadAnswer
from tests.api.test_tus import begin, patch
from tests.databases import Databases, libpq_url
from tests.e2e.stack import TERMINAL, Json, running_stack
from tests.faults.providers import Providers
from tests.faults.test_hostile_files import FILES, wrong_histogram
from tests.faults.test_many_endings import LATENCY_MS, QUICK
from tests.faults.trial import report
from tests.integration.llm.stub_provider import Answer
from tests.integration.services.execution.test_lying_providers import LIES
from tests.observe import PATIENCE, eventually
from tests.unit.importers.test_hostile_files import zipped

POLL_SECONDS = 0.05
VICTIMS = 4
"""Jobs that the other tenant runs at a time."""
UNREAD = 100
GOALS = 2, 0.25, 572
"""How much longer than alone the other tenant's jobs may take, the seconds of a poll, and the MiB of the API with its children: 600 MB."""
SHORT = 20, 10.0, 800
"""The same in the short form, on a machine that has other things to do."""
LIAR = "liar/writer"


class Liars(Providers):
    """Lies to each call in another way."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = 0

    def answer(self, connection: str, body: bytes) -> Answer:
        with self._lock:
            self._calls += 1
            lies = [*LIES.values()]
            return lies[self._calls % len(lies)](Usage(len(body), 1_000), self._calls).answer


def lie(port: Connection) -> None:
    """Serves the lying provider and tells its port."""
    with Liars().serving() as server:
        port.send(server.server_port)
        Event().wait()


@dataclass(frozen=True)
class Target:
    """Where the attacker strikes, and what is its own there.

    Attributes:
        job: An ended job with many long texts.
        link: The path of a share link to it.
    """

    url: str
    headers: dict[str, str]
    job: str
    link: str

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers=self.headers, timeout=PATIENCE, trust_env=False)


Attack = Callable[[Target], Iterator[object]]


def hostile_files(target: Target) -> Iterator[object]:
    """Sends files that were made to end, stop or fill their reader, as imports, bundles and uploads."""
    service = Service(target.url, "")
    service.http.headers.update(target.headers)
    bundle = zipped({"bundle.json": b'{"a":[' + b"[]," * 5_000_000 + b"[]]}"})
    with target.client() as client:
        for file, make, _ in FILES.values():
            query = {"name": file} if file else {}
            binary = {"content-type": "application/octet-stream"}
            yield client.post("/v1/imports", content=make(), params=query, headers=binary)
            yield client.post("/v1/bundles", content=bundle, headers={"content-type": "application/zip"})
            yield patch(service, begin(service, len(wrong_histogram())), 0, wrong_histogram())


def lying_providers(target: Target) -> Iterator[object]:
    """Runs jobs with a budget at a provider that lies about its bills."""
    job = QUICK | {"models": [{"model": LIAR, "max_tokens": 1_000}], "iterations": 50, "budget": {"usd": 0.5}}
    with target.client() as client:
        paths = []
        for _ in range(5):
            answer = client.post("/v1/jobs", json=job)
            paths.append(f"/v1/jobs/{answer.json()['id']}")
            yield answer
        for path in paths:
            yield eventually(lambda: client.get(path).json()["status"] in {*TERMINAL, "paused"})  # noqa: B023
            client.post(f"{path}/resume")


def unread_answers(target: Target) -> Iterator[object]:
    """Asks for long answers and reads none of them."""
    service = Service(target.url, "")
    paths = [f"/v1/jobs/{target.job}/{answer}" for answer in ("report?format=csv", "responses?limit=500")]
    paths.append(f"{target.link}/responses.csv")
    with ExitStack() as opened:
        for number in range(UNREAD):
            unread = UnreadAnswer(service, paths[number % len(paths)], target.headers)
            opened.callback(unread.close)
            yield unread.status()


def html_reports(target: Target) -> Iterator[object]:
    """Asks for reports, with a key and as a visitor without one."""
    with target.client() as client:
        yield client.get(f"/v1/jobs/{target.job}/report?format=html")
        client.headers.clear()
        yield client.get(f"{target.link}/report.html")


def many_endings(target: Target) -> Iterator[object]:
    """Submits quick jobs and cancels or retries each."""
    with target.client() as client:
        for number, id_ in enumerate([client.post("/v1/jobs", json=QUICK).json()["id"] for _ in range(20)]):
            yield client.post(f"/v1/jobs/{id_}/{('cancel', 'retry')[number % 2]}")


PHASES: dict[str, list[Attack]] = {
    "hostile files": [hostile_files] * 4,
    "lying providers": [lying_providers] * 4,
    "unread answers": [unread_answers],
    "HTML reports": [html_reports] * 8,
    "many endings": [many_endings] * 4,
}
PHASES["together"] = [attack for attacks in PHASES.values() for attack in attacks]


def strike(phase: str, target: Target, answers: "Synchronized[int]") -> None:
    """Does what a phase is made of, again and again, until the process is killed; counts what was answered."""

    def repeat(attack: Attack) -> None:
        while True:
            with suppress(Exception):  # an attacker goes on whatever it is told
                for _ in attack(target):
                    with answers.get_lock():
                        answers.value += 1

    threads = [Thread(target=repeat, args=(attack,)) for attack in PHASES[phase]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass
class Seen:
    """What the other tenant has seen.

    Attributes:
        polls: Seconds of each.
        jobs: Seconds from each job's submission to its end.
        statuses: Of all answers.
        memory: Most bytes of the API and its children.
    """

    polls: list[float] = field(default_factory=list)
    jobs: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    memory: int = 0

    def figures(self) -> dict[str, float]:
        return {
            "poll_p99": round(quantile(self.polls, 0.99), 3),
            "job_median": round(quantile(self.jobs, 0.5), 2),
            "job_p95": round(quantile(self.jobs, 0.95), 2),
            "api_mib": round(self.memory / MEBIBYTE),
        }


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1) + 0.5)]


class Victim:
    """The other tenant."""

    def __init__(self, url: str, headers: dict[str, str], api: psutil.Process) -> None:
        self._url, self._headers, self._api = url, headers, api
        self._lock = Lock()

    def sees(self, jobs: int) -> Seen:
        """Run so many jobs, a few at a time, and poll each until it has ended."""
        seen, over = Seen(), Event()
        watch = Thread(target=self._watch, args=(seen, over))
        watch.start()
        try:
            with ThreadPoolExecutor(VICTIMS) as pool:
                list(pool.map(lambda _: self._job(seen), range(jobs)))
        finally:
            over.set()
            watch.join()
        return seen

    def _job(self, seen: Seen) -> None:
        with httpx2.Client(
            base_url=self._url, headers=self._headers, timeout=PATIENCE, trust_env=False
        ) as client:
            submitted = time.monotonic()
            answer = client.post("/v1/jobs", json=QUICK)
            with self._lock:
                seen.statuses[answer.status_code] += 1
            assert answer.status_code == 202, answer.text
            path = f"/v1/jobs/{answer.json()['id']}"
            while True:
                asked = time.monotonic()
                answer = client.get(path)
                now = time.monotonic()
                with self._lock:
                    seen.polls.append(now - asked)
                    seen.statuses[answer.status_code] += 1
                if answer.status_code == 200 and answer.json()["status"] in TERMINAL:
                    break
                assert now - submitted < PATIENCE, answer.text
                time.sleep(POLL_SECONDS)
            assert answer.json()["status"] == "completed", answer.text
            seen.jobs.append(now - submitted)

    def _watch(self, seen: Seen, over: Event) -> None:
        while not over.wait(0.5):
            taken = 0
            for each in (self._api, *self._api.children(recursive=True)):
                with suppress(psutil.Error):  # it has just ended
                    taken += each.memory_full_info().pss
            seen.memory = max(seen.memory, taken)


@dataclass(frozen=True)
class Neighbours:
    """A service with two tenants."""

    victim: Victim
    target: Target


@pytest.fixture
def neighbours(
    tmp_path: Path, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> Iterator[Neighbours]:
    ours, theirs = multiprocessing.Pipe()
    with ExitStack() as exits:
        exits.enter_context(process(lie, theirs))
        assert ours.poll(PATIENCE)
        liar = {
            "kind": "openai",
            "base_url": f"http://127.0.0.1:{ours.recv()}/liar/v1",
            "prices": {"writer": {"input": 2.5, "output": 10}},
        }
        config = tmp_path / "assay.yaml"
        config.write_text(yaml.safe_dump({"connections": {"liar": liar}}))
        url = exits.enter_context(databases.new("neighbours", template=template_database))
        # Only the tests' environment has pandas. Where it is installed, pyarrow imports it on demand and takes 40 MiB more.
        hidden = tmp_path / "hidden"
        hidden.mkdir()
        (hidden / "pandas.py").write_text("raise ImportError")
        environment = {
            "PYTHONPATH": str(hidden),
            "ASSAY_KEY_PEPPER": PEPPER,
            "ASSAY_CONFIG": str(config),
            "ASSAY_TENANT_CHANGES_PER_SECOND": "5",  # the default
        }
        stack = exits.enter_context(
            running_stack(
                tmp_path / "stack", database_url=url, redis_url=valkey.url(), environment=environment
            )
        )
        keys = KeyMaker(url)
        attacker, victim = (bearer(keys.make(Scope.ADMIN, tenant=name)) for name in ("attacker", "victim"))
        stack.api.headers.update(attacker)
        job = stack.submit(QUICK)
        assert stack.ended(job)["status"] == "completed"
        with psycopg.connect(libpq_url(url), autocommit=True) as database:
            values = (CHARACTERS, CHARACTERS - 1, TEXTS, job)
            database.execute(FILL.encode() + b" ON CONFLICT DO NOTHING", values)
        link: Json = stack.api.post(f"/v1/jobs/{job}/share-links", json={"responses": True}).json()
        stack.simulate(latency_ms=LATENCY_MS)
        api = str(stack.api.base_url)
        yield Neighbours(
            Victim(api, victim, psutil.Process(stack.pid("api"))), Target(api, attacker, job, link["path"])
        )


@contextmanager
def process(work: Callable[..., None], *given: object) -> Iterator[psutil.Process]:
    """Runs work in a process of its own, which is killed in the end."""
    started = multiprocessing.get_context("spawn").Process(target=work, args=given, daemon=True)
    started.start()
    try:
        yield psutil.Process(started.pid)
    finally:
        started.kill()
        started.join()


@pytest.mark.parametrize(
    "jobs", [pytest.param(8, id="short"), pytest.param(100, id="long", marks=pytest.mark.long)]
)
@pytest.mark.timeout(3600)
def test_another_tenant_s_jobs_and_polls_go_on(neighbours: Neighbours, jobs: int) -> None:
    victim, figures = neighbours.victim, dict[str, dict[str, float]]()
    victim.sees(VICTIMS)  # what is imported late is there
    alone = victim.sees(jobs)
    figures["alone"] = alone.figures()
    all_seen = [alone]
    for phase in PHASES:
        answers = multiprocessing.get_context("spawn").Value("i", 0)
        with process(strike, phase, neighbours.target, answers) as attacker:
            assert eventually(lambda: answers.value > 0)  # noqa: B023
            before, began = attacker.cpu_times(), time.monotonic()
            seen = victim.sees(jobs)
            cpu = attacker.cpu_times()
            share = (cpu.user + cpu.system - before.user - before.system) / (time.monotonic() - began)
        all_seen.append(seen)
        figures[phase] = seen.figures() | {"answers": answers.value, "attacker_cpu": round(share, 2)}
        print(phase, figures[phase], dict(seen.statuses))  # noqa: T201 - pytest shows it when the test fails
    report(f"neighbours, {jobs} jobs", seed=0, n=len(PHASES), of=len(PHASES), **figures)
    assert not [status for seen in all_seen for status in seen.statuses if status >= 400]
    slower, poll_seconds, api_mib = GOALS if jobs >= 100 else SHORT
    for phase, found in figures.items():
        assert found["job_p95"] <= slower * figures["alone"]["job_p95"], phase
        assert found["poll_p99"] <= poll_seconds, phase
        assert found["api_mib"] <= api_mib, phase
