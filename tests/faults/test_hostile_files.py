"""Files that were made to end, stop or fill the process that reads them: each is refused, and the API answers others meanwhile."""

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import psutil  # type: ignore[import-untyped] # it comes without types
import pyarrow as pa
import pyarrow.parquet as pq

from app.domain.keys.api_key import Scope
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import Json, Service
from tests.api.test_tus import begin, patch
from tests.observe import PATIENCE, eventually
from tests.unit.importers.samples import json_lines
from tests.unit.importers.test_hostile_files import with_shared_bytes, yaml_levels, zipped

GOLDEN = Path(__file__).parents[1] / "golden"
HISTOGRAM = "not a Parquet file that can be read"
PSS_BYTES = 600 * 2**20


def parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def wrong_histogram() -> bytes:
    """A file whose footer ends the process if pyarrow shows it column by column."""
    return (GOLDEN / "parquet" / "wrong_histogram.parquet").read_bytes()


def repeated_values() -> bytes:
    """One row with a million times the same long text, in a few kilobytes."""
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000, pa.int32()), ["word " * 500])
    rows = pa.ListArray.from_arrays(pa.array([0, 1_000_000], pa.int32()), values)
    return parquet(pa.table({"text": rows, "persona": ["p p"]}))


def placeholders() -> bytes:
    card = {"name": "N" * 50_000, "description": "<BOT>" * 50_000, "personality": "", "first_mes": ""}
    return json.dumps(card).encode()


def prompts_and_tests() -> bytes:
    found = {"prompts": ["q {{v}}"] * 2_000, "tests": [{"vars": {"v": "x", "persona": "p p"}}] * 2_000}
    return json.dumps(found).encode()


def many_lists() -> bytes:
    return b'{"messages": [' + b"[]," * 2_000_000 + b"[]]}"


def broken_zstd() -> bytes:
    """An archive of many entries that share one body, which breaks at its end."""
    return with_shared_bytes(zipped({"samples/0000_epoch_1.json": b"x" * 1_000_000}), 30)


FILES: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a histogram that does not fit": ("", wrong_histogram, HISTOGRAM),
    "repeated values": ("", repeated_values, "takes more than"),
    "placeholders": ("", placeholders, "with its placeholders filled in"),
    "prompts times tests": ("", prompts_and_tests, "2,000 prompts × 2,000 tests"),
    "merge keys": (
        "a.yaml",
        lambda: yaml_levels("{{<<: [{0}, {1}], x{n}: 1}}"),
        "merge keys (<<) are not read",
    ),
    "aliases": (
        "a.yaml",
        lambda: yaml_levels("[{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}]"),
        "aliases repeat",
    ),
    "lists": ("", many_lists, "lists and objects"),
    "shared bytes": ("a.eval", broken_zstd, "overlaps another file"),
    "columns": ("", lambda: parquet(pa.table({f"c{n}": [1] for n in range(8_000)})), "has 8,000 columns"),
}


class Watch:
    """Another tenant's polls, and the memory of the API with its children."""

    def __init__(self, service: Service, key: Json) -> None:
        self._client = httpx2.Client(
            base_url=service.url, headers=bearer(key), timeout=PATIENCE, trust_env=False
        )
        assert service.process is not None
        self._process = psutil.Process(service.process.pid)
        self._over = threading.Event()
        self.answers: list[int] = []
        self.most = 0

    def run(self) -> None:
        while not self._over.wait(0.05):
            self.answers.append(self._client.get("/v1/jobs").status_code)
            self.most = max(self.most, self._pss())

    def _pss(self) -> int:
        taken = 0
        for each in (self._process, *self._process.children(recursive=True)):
            try:
                taken += each.memory_full_info().pss
            except psutil.Error:  # it has just ended
                continue
        return taken

    def end(self) -> None:
        self._over.set()

    def close(self) -> None:
        self._client.close()


@contextmanager
def watching(service: Service, key: Json) -> Iterator[Watch]:
    watch = Watch(service, key)
    thread = threading.Thread(target=watch.run)
    thread.start()
    try:
        yield watch
    finally:
        watch.end()
        thread.join()
        watch.close()


def reason(answer: httpx2.Response) -> str:
    """Why a file, or all that it has, was refused."""
    found = answer.json()
    errors: str = (
        found["reasons"][0]["reason"] if answer.status_code == 200 else found["errors"][0]["message"]
    )
    return errors


def test_hostile_files_are_refused_and_another_tenant_is_answered(
    scratch: Path, database_url: str, redis_url: str
) -> None:
    keys = KeyMaker(database_url)
    attacker, other = keys.make(Scope.ADMIN, tenant="attacker"), keys.make(Scope.READ, tenant="other")
    with guarded(scratch, database_url, redis_url) as service:
        service.http.headers.update(bearer(attacker))
        hook = service.post(
            "/v1/webhooks", {"url": "https://ci.example.com/hook", "events": ["file.reader_ended"]}
        ).json()["id"]
        with watching(service, other) as watch:
            for name, (file, make, words) in FILES.items():
                answer = service.http.post(
                    "/v1/imports",
                    content=make(),
                    params={"name": file} if file else {},
                    headers={"content-type": "application/octet-stream"},
                )
                assert answer.status_code in {200, 422}, (name, answer.text)
                assert words in reason(answer), (name, answer.text[:500])
            bundle = zipped({"bundle.json": b'{"a":[' + b"[]," * 5_000_000 + b"[]]}"})
            answer = service.http.post(
                "/v1/bundles", content=bundle, headers={"content-type": "application/zip"}
            )
            assert answer.status_code == 422, answer.text
            upload = begin(service, len(wrong_histogram()))
            patch(service, upload, 0, wrong_histogram())
            path = upload.removeprefix(service.url)
            assert eventually(lambda: service.get(path).json()["status"] == "invalid")
            assert HISTOGRAM in service.get(path).json()["errors"][0]["message"]
        messages = service.get(f"/v1/webhooks/{hook}/deliveries").json()["data"]
        assert {each["event"] for each in messages} == {"file.reader_ended"}
        assert len(messages) <= 4  # one for each limit
        assert service.process is not None
        assert service.process.poll() is None
        assert set(watch.answers) == {200}
        assert watch.most <= PSS_BYTES


def test_an_upload_is_read_though_its_reader_was_killed(
    scratch: Path, database_url: str, redis_url: str
) -> None:
    keys = KeyMaker(database_url)
    with guarded(scratch, database_url, redis_url) as service:
        service.http.headers.update(bearer(keys.make(Scope.SUBMIT)))
        assert service.process is not None
        lines = json_lines(
            *[{"persona": "p p", "task": "essay", "model": "m", "text": "It snows. " * 50}] * 5
        )
        first = service.http.post("/v1/imports", content=lines)
        assert first.status_code == 200, first.text
        for each in psutil.Process(service.process.pid).children(recursive=True):
            each.kill()
        again = service.http.post("/v1/imports", content=lines)
        assert (again.status_code, again.json()["mapped"]) == (200, 5)
