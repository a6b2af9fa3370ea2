"""Keys from their making to their end, and the sessions of those who sign in with one."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest
from click.testing import CliRunner

from app.api.http.sessions import COOKIE, HOST_COOKIE
from app.cli import app
from app.domain.keys.api_key import Scope
from app.services.keys.authenticator import KNOWN_SECONDS
from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER, KeyMaker, bearer, guarded
from tests.api.service import Json, Service, assert_told_as_broken_off, job_body
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.observe import PATIENCE, eventually

BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with (
        databases.new("keys", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        guarded(
            directory,
            url,
            valkey.url(),
            ASSAY_HOSTS="assay.example, Lab.example",
            ASSAY_PUBLIC_URL="https://lab.example/assay/",
            ASSAY_LOG_LEVEL="INFO",
        ) as running,
    ):
        yield running


@pytest.fixture
def admin(service: Service) -> Iterator[dict[str, str]]:
    """The header of an administrator, who is the first."""
    yield bearer(KeyMaker(service.database_url).make(Scope.ADMIN))
    service.empty("api_keys", "jobs")


def made(service: Service, admin: dict[str, str], **body: Any) -> Json:
    answer = service.post("/v1/api-keys", {"name": "ci", "scopes": ["read"]} | body, headers=admin)
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    return found


def status(service: Service, key: Json) -> int:
    return service.get("/v1/jobs", headers=bearer(key)).status_code


def ends(service: Service, key: Json) -> bool:
    return eventually(lambda: status(service, key) == 401)


class TestLife:
    def test_a_key_is_shown_once_and_found_in_no_row(self, service: Service, admin: dict[str, str]) -> None:
        key = made(service, admin, scopes=["submit", "read"], name="nightly")
        assert re.fullmatch(r"assay_[0-9A-Za-z]{50}", key["key"])
        assert key["scopes"] == ["read", "submit"]
        shown = service.get(f"/v1/api-keys/{key['id']}", headers=admin).json()
        assert shown == {name: value for name, value in key.items() if name != "key"}
        with psycopg.connect(libpq_url(service.database_url)) as connection:
            rows = str(connection.execute("SELECT k::text FROM api_keys k").fetchall())
        assert key["prefix"] in rows
        assert key["key"][len(key["prefix"]) :] not in rows

    def test_the_newest_is_listed_first_page_after_page(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        names = [made(service, admin, name=f"key {n}")["name"] for n in range(3)]
        found: list[Json] = []
        after: str | None = None
        while after != "":
            query = {"limit": 2} if after is None else {"limit": 2, "after": after}
            page = service.get("/v1/api-keys", params=query, headers=admin).json()
            found += page["data"]
            after = page["next_cursor"] or ""
        assert [key["name"] for key in found] == [*reversed(names), "a key"]
        assert all("key" not in key for key in found)

    def test_while_it_is_rotated_two_live_at_once(self, service: Service, admin: dict[str, str]) -> None:
        first = made(service, admin)
        second = rotated(service, admin, first, overlap_seconds=3600)
        assert status(service, first) == status(service, second) == 200
        assert second["former"]["prefix"] == first["prefix"]
        third = rotated(service, admin, first, overlap_seconds=3600)
        assert [status(service, key) for key in (second, third)] == [200, 200]
        assert ends(service, first)

    def test_the_former_one_has_an_end(self, service: Service, admin: dict[str, str]) -> None:
        first = made(service, admin)
        second = rotated(service, admin, first, overlap_seconds=0)
        assert ends(service, first)
        assert status(service, second) == 200
        assert second["former"] is None

    def test_a_revoked_one_is_refused_and_cannot_come_back(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        key = made(service, admin)
        assert status(service, key) == 200
        path = f"/v1/api-keys/{key['id']}"
        first, again = (service.http.delete(path, headers=admin).json() for _ in range(2))
        assert first["status"] == "revoked"
        assert first == again
        assert ends(service, key)
        assert service.post(f"{path}/rotate", {}, headers=admin).status_code == 404

    def test_requests_with_wrong_ones_are_counted(self, service: Service, admin: dict[str, str]) -> None:
        wrong = {"authorization": f"Bearer assay_{50 * 'x'}"}
        for _ in range(20):
            assert service.get("/v1/jobs", headers=wrong).status_code == 401

        def refused() -> float:
            metrics = service.get("/metrics", headers=admin).text
            return sum(map(float, re.findall(r"^assay_keys_refused_total\S* (\S+)$", metrics, re.MULTILINE)))

        assert eventually(lambda: refused() >= 20)

    def test_one_ends_when_it_said(self, service: Service, admin: dict[str, str]) -> None:
        later = datetime.now(UTC) + timedelta(hours=1)
        key = made(service, admin, expires_at=later.isoformat())
        assert status(service, key) == 200
        service.execute("UPDATE api_keys SET expires_at = clock_timestamp() WHERE id = %s", key["id"])
        assert ends(service, key)
        assert service.get(f"/v1/api-keys/{key['id']}", headers=admin).json()["status"] == "expired"

    def test_a_stream_of_events_ends_with_it(self, service: Service, admin: dict[str, str]) -> None:
        key = made(service, admin, scopes=["submit"])
        job = service.submit(job_body(), headers=bearer(key))
        with (
            httpx2.Client(base_url=service.url, timeout=PATIENCE, trust_env=False) as client,
            client.stream("GET", f"/v1/jobs/{job['id']}/events", headers=bearer(key)) as response,
        ):
            lines = response.iter_lines()
            assert next(lines).startswith("retry")
            service.http.delete(f"/v1/api-keys/{key['id']}", headers=admin)
            assert ends(service, key)
            service.post(f"/v1/jobs/{job['id']}/pause", headers=admin)
            with pytest.raises(httpx2.RemoteProtocolError):  # it breaks off: an export must not look whole
                assert not [line for line in lines if "paused" in line]
        assert_told_as_broken_off(service, f"/v1/jobs/{job['id']}/events")

    def test_it_is_noted_when_one_was_last_used(self, service: Service, admin: dict[str, str]) -> None:
        key = made(service, admin)
        path = f"/v1/api-keys/{key['id']}"
        assert service.get(path, headers=admin).json()["last_used_at"] is None
        status(service, key)
        assert eventually(lambda: service.get(path, headers=admin).json()["last_used_at"] is not None, 10)

    @pytest.mark.parametrize(
        ("wrong", "pointer"),
        [
            ({"name": ""}, "/name"),
            ({"scopes": []}, "/scopes"),
            ({"scopes": ["root"]}, "/scopes/0"),
            ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
            ({"expires_at": "2099-01-01T00:00:00"}, "/expires_at"),
            ({"requests_per_minute": 0}, "/requests_per_minute"),
            ({"spending": {"usd_limit": 0}}, "/spending/usd_limit"),
            ({"tenant": "other"}, "/tenant"),
        ],
    )
    def test_a_wrong_field_is_named(
        self, service: Service, admin: dict[str, str], wrong: Json, pointer: str
    ) -> None:
        answer = service.post("/v1/api-keys", {"name": "x", "scopes": ["read"]} | wrong, headers=admin)
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def rotated(service: Service, admin: dict[str, str], key: Json, **body: int) -> Json:
    answer = service.post(f"/v1/api-keys/{key['id']}/rotate", body, headers=admin)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


class TestSessions:
    @pytest.fixture
    def browser(self, service: Service) -> Iterator[httpx2.Client]:
        with httpx2.Client(base_url=service.url, headers=BROWSER, trust_env=False) as client:
            yield client

    def sign_in(self, browser: httpx2.Client, key: str, following: str = "/") -> httpx2.Response:
        return browser.post("/sign-in", data={"key": key, "next": following})

    def test_who_is_unknown_is_asked_to_sign_in_and_then_led_to_what_he_wanted(
        self, service: Service, admin: dict[str, str], browser: httpx2.Client
    ) -> None:
        sent = browser.get("/compare?a=x%3Ay&b=")
        assert sent.status_code == 303
        assert sent.headers["location"] == "/sign-in?next=%2Fcompare%3Fa%3Dx%253Ay%26b%3D"
        form = browser.get(sent.headers["location"])
        assert '<input type="hidden" name="next" value="/compare?a=x%3Ay&amp;b=">' in form.text
        answer = self.sign_in(browser, key_in(admin), "/compare?a=x%3Ay&b=")
        assert (answer.status_code, answer.headers["location"]) == (303, "/compare?a=x%3Ay&b=")
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
        assert key_in(admin) not in cookie
        page = browser.get("/")
        assert page.status_code == 200
        assert 'action="/sign-out"' in page.text

    @pytest.mark.parametrize(
        ("scheme", "name", "secure"), [("https", HOST_COOKIE, True), ("http", COOKIE, False)]
    )
    def test_behind_a_proxy_that_encrypts_its_cookie_goes_nowhere_else_and_comes_from_nowhere_else(
        self, admin: dict[str, str], browser: httpx2.Client, scheme: str, name: str, secure: bool
    ) -> None:
        browser.headers["X-Forwarded-Proto"] = scheme
        began = self.sign_in(browser, key_in(admin)).headers["set-cookie"].split("; ")
        session = began[0].removeprefix(f"{name}=")
        for planted, status in ((COOKIE, 200 if name == COOKIE else 401), (name, 200)):
            browser.cookies.clear()
            shown = {"Cookie": f"{planted}={session}"}
            assert browser.get("/v1/jobs", headers=shown).status_code == status
        ended = browser.post("/sign-out", headers={"Cookie": f"{name}={session}"})
        forgotten = ended.headers["set-cookie"].split("; ")
        assert forgotten[0] == f'{name}=""'
        for cookie in (began, forgotten):  # a browser takes that name only with these
            assert "Path=/" in cookie
            assert ("Secure" in cookie) is secure
            assert not [part for part in cookie if part.startswith("Domain")]

    def test_a_wrong_key_is_refused_and_not_repeated(
        self, admin: dict[str, str], browser: httpx2.Client
    ) -> None:
        answer = self.sign_in(browser, key_in(admin)[:-1] + "~")
        assert answer.status_code == 401
        assert "An API key is assay_ followed by 50 letters and digits." in answer.text
        assert key_in(admin)[:-1] not in answer.text
        assert "set-cookie" not in answer.headers

    @pytest.mark.parametrize(
        "address", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", ""]
    )
    def test_it_leads_nowhere_else(self, admin: dict[str, str], browser: httpx2.Client, address: str) -> None:
        assert self.sign_in(browser, key_in(admin), address).headers["location"] == "/"

    def test_it_ends_when_the_key_is_revoked(
        self, service: Service, admin: dict[str, str], browser: httpx2.Client
    ) -> None:
        key = made(service, admin)
        self.sign_in(browser, key["key"])
        assert browser.get("/v1/jobs").status_code == 200
        service.http.delete(f"/v1/api-keys/{key['id']}", headers=admin)
        assert eventually(lambda: browser.get("/v1/jobs").status_code == 401, 5)

    def test_it_may_do_what_the_key_may(
        self, service: Service, admin: dict[str, str], browser: httpx2.Client
    ) -> None:
        self.sign_in(browser, made(service, admin)["key"])
        assert browser.post("/v1/jobs", json=job_body()).status_code == 403
        assert browser.post("/new", data={}).status_code == 403

    def test_another_site_s_page_cannot_use_it(self, admin: dict[str, str], browser: httpx2.Client) -> None:
        self.sign_in(browser, key_in(admin))
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
            assert browser.post("/v1/jobs", json=job_body(), headers=headers).status_code == 403
            assert self.foreign_sign_in(browser, headers) == 403

    def foreign_sign_in(self, browser: httpx2.Client, headers: dict[str, str]) -> int:
        return browser.post("/sign-in", data={"key": "x"}, headers=headers).status_code

    def test_it_ends_by_signing_out_and_so_does_a_copy_of_its_cookie(
        self, service: Service, admin: dict[str, str], browser: httpx2.Client
    ) -> None:
        self.sign_in(browser, key_in(admin))
        stolen = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
        assert service.get("/v1/jobs", headers=stolen).status_code == 200
        assert browser.post("/sign-out").headers["location"] == "/sign-in"
        assert browser.get("/v1/jobs").status_code == 401
        assert service.get("/v1/jobs", headers=stolen).status_code == 401
        assert service.get("/v1/jobs", headers=admin).status_code == 200  # the key itself lives

    def test_a_stream_ends_when_its_session_is_signed_out(
        self, service: Service, admin: dict[str, str], browser: httpx2.Client
    ) -> None:
        job = service.submit(job_body(), headers=admin)
        self.sign_in(browser, key_in(admin))
        stolen = {"Cookie": f"{COOKIE}={browser.cookies[COOKIE]}"}
        with (
            httpx2.Client(base_url=service.url, timeout=PATIENCE, trust_env=False) as client,
            client.stream("GET", f"/v1/jobs/{job['id']}/events", headers=stolen) as response,
        ):
            lines = response.iter_lines()
            assert next(lines).startswith("retry")
            browser.post("/sign-out")
            time.sleep(2 * KNOWN_SECONDS)  # so that it is asked again who listens
            service.post(f"/v1/jobs/{job['id']}/pause", headers=admin)
            with pytest.raises(httpx2.RemoteProtocolError):
                assert not [line for line in lines if "paused" in line]
        assert_told_as_broken_off(service, f"/v1/jobs/{job['id']}/events")

    def test_who_signs_in_again_is_known_again(self, admin: dict[str, str], browser: httpx2.Client) -> None:
        for _ in range(2):
            self.sign_in(browser, key_in(admin))
            assert browser.get("/v1/jobs").status_code == 200
            browser.post("/sign-out")

    @pytest.mark.parametrize(
        ("method", "path", "expected"),
        [
            ("POST", "/sign-out", 303),
            ("POST", "/v1/api-keys/{}/rotate", 200),
            ("DELETE", "/v1/api-keys/{}", 200),
        ],
    )
    def test_who_ends_his_own_key_is_told_so_however_long_it_takes(
        self,
        service: Service,
        admin: dict[str, str],
        browser: httpx2.Client,
        method: str,
        path: str,
        expected: int,
    ) -> None:
        key = made(service, admin, scopes=["admin"])
        self.sign_in(browser, key["key"])
        body = {"overlap_seconds": 0} if path.endswith("rotate") else None
        lock = f"SELECT FROM api_keys WHERE id = '{key['id']}' FOR UPDATE"
        with held_up(
            service, lock, lambda: browser.request(method, path.format(key["id"]), json=body)
        ) as answer:
            time.sleep(1.5 * KNOWN_SECONDS)
        assert answer.result().status_code == expected
        assert browser.get("/v1/jobs").status_code == 401

    def test_an_answer_that_has_not_begun_when_its_key_ends_is_refused(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        key = made(service, admin)
        lock = "LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE"
        with held_up(service, lock, lambda: service.get("/v1/jobs", headers=bearer(key))) as answer:
            service.http.delete(f"/v1/api-keys/{key['id']}", headers=admin)
            time.sleep(1.5 * KNOWN_SECONDS)
        refused = answer.result()
        assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


@contextmanager
def held_up(
    service: Service, lock: str, ask: Callable[[], httpx2.Response]
) -> Iterator[Future[httpx2.Response]]:
    """The answer to a request that has come to a lock, which is held until the end."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as thread, psycopg.connect(libpq_url(service.database_url)) as other:
        other.execute(lock.encode())
        answer = thread.submit(ask)
        assert eventually(lambda: service.count(waiting) > 0, 60)
        yield answer


def key_in(header: dict[str, str]) -> str:
    return header["Authorization"].partition(" ")[2]


class TestLimits:
    def test_who_asks_more_often_than_his_key_may_is_told_when_to_come_again(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        key = made(service, admin, requests_per_minute=1)
        assert status(service, key) == 200
        assert eventually(
            lambda: status(service, key) == 429, 30
        )  # a Redis that is slow to answer limits nobody
        refused = service.get("/v1/jobs", headers=bearer(key))
        assert refused.json()["code"] == "rate_limited"
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert service.get("/v1/jobs", headers=admin).status_code == 200

    def test_a_job_beyond_what_a_keys_jobs_may_spend_is_refused_whatever_way_it_comes(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        key = made(service, admin, scopes=["submit"], spending={"usd_limit": 1})
        service.execute("UPDATE api_keys SET nanos = nanos_limit WHERE id = %s", key["id"])
        made_up = {"generate": {"count": 2, "reasoner": "simulated/sim-reasoner"}}
        for path, body in (("/v1/jobs", job_body()), ("/v1/persona-sets", made_up)):
            refused = service.post(path, body, headers=bearer(key))
            assert (refused.status_code, refused.json()["code"]) == (403, "spending_cap_reached")
            assert "leaves $0.00" in refused.json()["detail"]
        assert service.rows()["jobs"] == 0
        path = f"/v1/api-keys/{key['id']}"
        raised = service.http.patch(path, json={"spending": {"usd_limit": 2}}, headers=admin).json()
        assert raised["spending"] == {"usd_limit": 2, "usd_spent": 1}
        assert service.post("/v1/jobs", job_body(), headers=bearer(key)).status_code == 202

    def test_a_key_with_a_cap_has_nothing_spent_by_jobs_that_are_not_its_own(
        self, service: Service, admin: dict[str, str]
    ) -> None:
        capped, other = (made(service, admin, scopes=["submit"], spending={"usd_limit": 1}) for _ in range(2))
        theirs = [
            service.submit(job_body(budget={"usd": 1}), headers=headers)["id"]
            for headers in (admin, bearer(other))
        ]
        own = service.submit(job_body(budget={"usd": 1}), headers=bearer(capped))["id"]
        asked = [("PATCH", "", {"budget": {"usd": 2}}), ("POST", "/resume", {}), ("POST", "/retry", {})]
        for method, deed, body in asked:
            for job, expected in ((theirs[0], 403), (theirs[1], 403), (own, 200)):
                path = f"/v1/jobs/{job}{deed}"
                answer = service.http.request(method, path, json=body, headers=bearer(capped))
                assert answer.status_code == expected, (path, answer.text)
                assert expected == 200 or answer.json()["code"] == "not_under_cap"
            free = service.http.request(method, f"/v1/jobs/{theirs[1]}{deed}", json=body, headers=admin)
            assert free.status_code == 200
        page = service.post(f"/jobs/{theirs[0]}/retry", {}, headers=bearer(capped))
        assert page.status_code == 403
        for deed in ("pause", "cancel"):  # what spends less
            assert service.post(f"/v1/jobs/{theirs[0]}/{deed}", {}, headers=bearer(capped)).status_code == 200

    def test_a_key_without_a_cap_gets_none_later(self, service: Service, admin: dict[str, str]) -> None:
        path = f"/v1/api-keys/{made(service, admin)['id']}"
        refused = service.http.patch(path, json={"spending": {"usd_limit": 2}}, headers=admin)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/spending")


class TestThisMachine:
    def test_is_reached_by_nobody_with_a_key(self, service: Service, admin: dict[str, str]) -> None:
        for path, wrong in (
            ("/v1/connections", {"name": "lab", "kind": "openai", "base_url": "http://127.0.0.1:8000/v1"}),
            ("/v1/webhooks", {"url": "http://localhost:8000/hook"}),
        ):
            refused = service.http.request("POST", path, json=wrong, headers=admin)
            assert refused.status_code == 422
            assert "ASSAY_ALLOWED_NETWORKS" in refused.json()["errors"][0]["message"]


class TestStrangers:
    def test_without_keys_the_service_does_not_start_for_them(
        self, databases: Databases, template_database: str
    ) -> None:
        with databases.new("strangers", template=template_database) as url:
            variables = {"DATABASE_URL": url, "REDIS_URL": "redis://127.0.0.1:9", "ASSAY_HOST": "0.0.0.0"}
            command = [sys.executable, "-m", "app.serve", "--factory", "app.main:create_app", "--port", "0"]
            done = subprocess.run(
                command,
                env=os.environ | variables,
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
        assert done.returncode != 0
        assert "not on 0.0.0.0" in done.stderr
        assert "assay keys create" in done.stderr
        assert "Traceback" not in done.stderr


class TestHosts:
    @pytest.mark.parametrize(
        "host",
        [
            "localhost",
            "LOCALHOST:8321",
            "127.0.0.1",
            "192.168.1.7:80",
            "[::1]:8321",
            "assay.example",
            "lab.example.",
        ],
    )
    def test_the_service_answers_to_its_names_and_to_addresses_in_numbers(
        self, service: Service, admin: dict[str, str], host: str
    ) -> None:
        assert service.get("/v1/jobs", headers=admin | {"Host": host}).status_code == 200

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[", "assay.example.evil"],
    )
    def test_and_to_no_others(self, service: Service, admin: dict[str, str], host: str) -> None:
        answer = service.get("/v1/jobs", headers=admin | {"Host": host})
        assert answer.status_code == 421
        assert "ASSAY_HOSTS" in answer.json()["detail"]

    def test_reports_lead_to_where_people_reach_it(self, service: Service, admin: dict[str, str]) -> None:
        job = service.post("/v1/jobs", json=job_body(), headers=admin).json()["id"]
        report = service.get(f"/v1/jobs/{job}/report", params={"format": "html"}, headers=admin).text
        assert f'<a href="https://lab.example/assay/jobs/{job}">' in report

    def test_probes_are_answered_by_any_name(self, service: Service) -> None:
        for path in ("/healthz", "/readyz"):
            assert service.get(path, headers={"Host": "pod-7.cluster.internal"}).status_code == 200


class TestCommands:
    def run(self, service: Service, *arguments: str) -> Json:
        variables = {"DATABASE_URL": service.database_url, "ASSAY_KEY_PEPPER": PEPPER}
        done = CliRunner().invoke(app, ["keys", *arguments, "--json"], env=variables)
        assert done.exit_code == 0, done.output
        assert done.stderr.startswith("Service: database ")
        assert service.database_url not in done.stderr
        found: Json = json.loads(done.stdout)
        return found

    def test_keys_are_managed_straight_on_the_database(self, service: Service) -> None:
        key = self.run(service, "create", "--name", "first", "--scope", "admin", "--usd", "25")
        assert eventually(lambda: status(service, key) == 200, 5)
        listed = self.run(service, "list")["data"]
        assert [(each["id"], each["spending"]["usd_limit"]) for each in listed] == [(key["id"], 25)]
        other = self.run(service, "rotate", key["id"], "--overlap-hours", "0")
        assert ends(service, key)
        assert status(service, other) == 200
        assert self.run(service, "revoke", key["id"])["status"] == "revoked"
        assert ends(service, other)
        service.empty("api_keys")

    def test_without_a_pepper_none_is_made(self, service: Service) -> None:
        variables = {"DATABASE_URL": service.database_url, "ASSAY_DATA_DIR": "/nonexistent"}
        done = CliRunner().invoke(app, ["keys", "create", "--name", "x"], env=variables)
        assert done.exit_code == 3
        assert "ASSAY_KEY_PEPPER" in done.stderr
