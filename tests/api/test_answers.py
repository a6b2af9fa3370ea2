"""Readers who take nothing, and many readers: an API holds little for each, and others are answered."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx2
import psutil  # type: ignore[import-untyped] # it comes without types
import pytest

from app.api.http.answers import DOWNLOAD_BYTES, LINK_SHARE, TENANT_SHARE
from app.domain.keys.api_key import Scope
from app.settings import Settings
from tests.api.keys import KeyMaker, bearer, guarded_alone
from tests.api.service import Json, Service, job_body
from tests.api.test_pages import BROWSER
from tests.api.test_settings_pages import Headers
from tests.databases import Databases
from tests.observe import PATIENCE, eventually

MEBIBYTE = 1 << 20
MOST: int = Settings.model_fields["answer_bytes"].default
OF_LINK, OF_TENANT = (MOST // share // DOWNLOAD_BYTES for share in (LINK_SHARE, TENANT_SHARE))
TEXTS, CHARACTERS = 400, 40_000
VISITORS = 12

FILL = """
INSERT INTO responses (cell_id, run, item, tenant, instruction, status, text, unit_starts, unit_ends, verdicts_due,
 finish_reason, input_tokens, output_tokens)
SELECT c.id, run, 0, c.tenant, 0, 'answered', repeat('word ', %s / 5), '{0}', ARRAY[%s], 1, 'stop', 1, 1
FROM cells c, generate_series(0, %s - 1) run WHERE c.job_id = %s
"""


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with guarded_alone(databases, template_database, "answers") as running:
        yield running


@pytest.fixture(scope="module")
def keys(service: Service) -> dict[str, Headers]:
    maker = KeyMaker(service.database_url)
    return {name: bearer(maker.make(Scope.ADMIN, tenant=name)) for name in ("default", "other")}


@pytest.fixture(scope="module")
def job(service: Service, keys: dict[str, Headers]) -> str:
    """A job of 16 MB of text."""
    body = job_body(iterations=TEXTS, name="long")
    job_id = str(service.submit(body, headers=keys["default"])["id"])
    service.execute(FILL, CHARACTERS, CHARACTERS - 1, TEXTS, job_id)
    return job_id


@pytest.fixture
def link(service: Service, keys: dict[str, Headers], job: str) -> Json:
    made = service.post(f"/v1/jobs/{job}/share-links", {"responses": True}, headers=keys["default"])
    found: Json = made.json()
    return found


class UnreadAnswer:
    """A request whose answer is taken only when the test says so; the socket's own buffer is small."""

    def __init__(self, service: Service, path: str, headers: Headers | None = None) -> None:
        parts = urlsplit(service.url)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(PATIENCE)
        self._socket.connect((str(parts.hostname), parts.port or 0))
        lines = [
            f"GET {path} HTTP/1.1",
            "host: 127.0.0.1",
            *(f"{k}: {v}" for k, v in (headers or {}).items()),
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())

    def status(self) -> int:
        return int(self._socket.recv(12).split()[1])

    def rest(self) -> int:
        """Bytes of the rest, up to its end or to the end of the connection."""
        length = 0
        try:
            while got := self._socket.recv(1 << 16):
                length += len(got)
                if got.endswith(b"0\r\n\r\n"):
                    break
        except ConnectionError:
            pass
        return length

    def close(self) -> None:
        self._socket.close()


def memory(service: Service) -> int:
    """Proportional set size of the API's process and its children."""
    assert service.process is not None
    process = psutil.Process(service.process.pid)
    return sum(each.memory_full_info().pss for each in (process, *process.children(recursive=True)))


class TestUnreadDownloads:
    def test_a_hundred_by_one_link_hold_little_and_refuse_the_tenant_nothing(
        self, service: Service, keys: dict[str, Headers], job: str, link: Json
    ) -> None:
        path = f"{link['path']}/responses.csv"
        with ExitStack() as opened:
            statuses = []
            for _ in range(100):
                answer = UnreadAnswer(service, path)
                opened.callback(answer.close)
                statuses.append(answer.status())
            assert statuses[:OF_LINK] == [200] * OF_LINK
            assert set(statuses[OF_LINK:]) == {429}
            assert memory(service) < 600 * MEBIBYTE
            for own in (f"/v1/jobs/{job}/report?format=csv&level=cells", f"/v1/jobs/{job}/results"):
                assert service.get(own, headers=keys["default"]).status_code == 200
            events = f"{service.url}/v1/jobs/{job}/events"
            with httpx2.stream("GET", events, headers=keys["default"], trust_env=False) as stream:
                assert stream.status_code == 200
            other = service.post(f"/v1/jobs/{job}/share-links", {}, headers=keys["default"]).json()
            assert (
                httpx2.get(service.url + other["path"], trust_env=False, timeout=PATIENCE).status_code == 200
            )

    @pytest.mark.parametrize("answer", ["report?format=csv", "responses?limit=500", "exports/rewards"])
    def test_of_a_tenant_hold_little_and_others_are_answered(
        self, service: Service, keys: dict[str, Headers], job: str, answer: str
    ) -> None:
        with ExitStack() as opened:
            for _ in range(100):
                unread = UnreadAnswer(service, f"/v1/jobs/{job}/{answer}", keys["default"])
                opened.callback(unread.close)
                assert unread.status() in (200, 429)
            assert memory(service) < 600 * MEBIBYTE
            assert service.get("/v1/jobs", headers=keys["other"]).status_code == 200
            assert service.get("/v1/annotations", headers=keys["default"]).status_code == 200, (
                "a short answer"
            )
            report = service.get("/v1/annotations?format=csv", headers=keys["other"])
            assert report.status_code == 200
        path = f"/v1/jobs/{job}/report?format=csv&level=responses"
        assert eventually(lambda: service.get(path, headers=keys["default"]).status_code == 200)

    def test_a_page_of_long_responses_ends_early(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        headers = keys["default"]
        pages: list[Json] = []
        after = ""
        while len(pages) < 3:
            page = service.get(f"/v1/jobs/{job}/responses?limit=500{after}", headers=headers)
            pages.append(page.json())
            assert len(page.content) < 3 * MEBIBYTE
            after = f"&after={pages[-1]['next_cursor']}"
        runs = [response["run"] for page in pages for response in page["data"]]
        assert runs == list(range(len(runs)))


class TestPublicFiles:
    def test_unread_hold_little(self, service: Service) -> None:
        path = "/swagger/swagger-ui-bundle.js"
        size = len(service.get(path).content)
        before = memory(service)
        with ExitStack() as opened:
            answers = []
            for _ in range(100):
                answers.append(UnreadAnswer(service, path))
                opened.callback(answers[-1].close)
                assert answers[-1].status() == 200
            assert memory(service) - before < 100 * size / 4
            assert answers[0].rest() >= size


class TestShareLinkThatEnds:
    @pytest.mark.parametrize(
        "ending",
        [
            "UPDATE share_links SET revoked_at = now() WHERE id = %s",
            "UPDATE share_links SET expires_at = now() WHERE id = %s",
        ],
    )
    def test_ends_a_download(self, service: Service, link: Json, ending: str) -> None:
        answer = UnreadAnswer(service, f"{link['path']}/responses.csv")
        assert answer.status() == 200
        service.execute(ending, link["id"])
        assert answer.rest() < TEXTS * CHARACTERS / 2
        answer.close()

    def test_leaves_others_alone(
        self, service: Service, keys: dict[str, Headers], job: str, link: Json
    ) -> None:
        other = service.post(
            f"/v1/jobs/{job}/share-links", {"responses": True}, headers=keys["default"]
        ).json()
        answer = UnreadAnswer(service, f"{other['path']}/responses.csv")
        assert answer.status() == 200
        service.execute("UPDATE share_links SET revoked_at = now() WHERE id = %s", link["id"])
        assert answer.rest() > TEXTS * CHARACTERS
        answer.close()


class TestReports:
    def test_of_visitors_wait_while_another_tenant_receives_one(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        """Visitors of several links take turns as one party, which has one of the two places."""
        own = service.submit(job_body(name="small"), headers=keys["other"])["id"]
        links = [
            service.post(f"/v1/jobs/{job}/share-links", {}, headers=keys["default"]).json()["path"]
            for _ in range(VISITORS)
        ]

        def visit(path: str) -> int:
            place = f"{service.url}{path}/report.html"
            return httpx2.get(place, headers=BROWSER, timeout=PATIENCE, trust_env=False).status_code

        with ThreadPoolExecutor(VISITORS) as visitors:
            visits = [visitors.submit(visit, path) for path in links]
            assert eventually(lambda: any(each.done() for each in visits))
            report = service.get(f"/v1/jobs/{own}/report?format=html", headers=keys["other"])
            done = sum(each.done() for each in visits)
            assert report.status_code == 200
            assert done < VISITORS / 2, "the visitors' reports came first"
            assert {each.result() for each in visits} == {200}

    def test_are_read_by_several_visitors_at_a_time(
        self, service: Service, keys: dict[str, Headers], link: Json
    ) -> None:
        place = f"{service.url}{link['path']}/report.html"

        def visit(_: int) -> int:
            return httpx2.get(place, headers=BROWSER, timeout=PATIENCE, trust_env=False).status_code

        with ThreadPoolExecutor(6) as visitors:
            assert list(visitors.map(visit, range(6))) == [200] * 6
