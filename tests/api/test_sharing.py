"""Share links: what they give without a key, to whom, until when, and nothing else."""

import hashlib
import json
import re
from collections.abc import Iterator

import httpx2
import psycopg
import pytest
from click.testing import CliRunner

from app.cli import app as cli
from app.domain.keys.api_key import POSSIBLE, Scope, compose
from embedded.valkey import EmbeddedValkey
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import Json, Service, job_body
from tests.api.test_pages import BROWSER, look, post
from tests.api.test_settings_pages import Headers, send
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.observe import PATIENCE

FILES = ("report.html", "results.json", "cells.csv")
RESPONSES = ("responses.csv", "responses.jsonl")


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with (
        databases.new("sharing", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        guarded(directory, url, valkey.url()) as running,
    ):
        yield running


@pytest.fixture
def keys(service: Service) -> Iterator[dict[str, Headers]]:
    maker = KeyMaker(service.database_url)
    made = {scope.value: bearer(maker.make(scope)) for scope in Scope}
    yield made | {"other": bearer(maker.make(Scope.ADMIN, tenant="other"))}
    service.empty("api_keys", "jobs")


@pytest.fixture
def job(service: Service, keys: dict[str, Headers]) -> str:
    return str(service.submit(job_body(name="a secret plan"), headers=keys["submit"])["id"])


def made(service: Service, job: str, key: Headers, **body: object) -> Json:
    answer = service.post(f"/v1/jobs/{job}/share-links", body, headers=key)
    assert answer.status_code == 201, answer.text
    found: Json = answer.json()
    return found


def seen(service: Service, path: str) -> httpx2.Response:
    """What somebody without a key gets; a report may take its time on a busy machine."""
    return httpx2.get(f"{service.url}{path}", headers=BROWSER, timeout=PATIENCE, trust_env=False)


class TestLink:
    def test_gives_the_job_without_a_key_and_its_token_is_in_no_row(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        link = made(service, job, keys["submit"], days=2, description="reviewers <b>")
        token = link["path"].removeprefix("/shared/")
        assert re.fullmatch(r"assay_[0-9A-Za-z]{50}", token)
        page = seen(service, link["path"])
        assert page.status_code == 200
        assert "a secret plan" in page.text
        assert 'href="/"' not in page.text
        for file in FILES:
            answer = seen(service, f"{link['path']}/{file}")
            assert answer.status_code == 200, file
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "noindex" in answer.headers["x-robots-tag"]
            assert answer.headers["cache-control"] == "no-store"
        for file in RESPONSES:
            assert seen(service, f"{link['path']}/{file}").status_code == 404
        assert page.headers["referrer-policy"] == "no-referrer"
        listed = service.get(f"/v1/jobs/{job}/share-links", headers=keys["read"]).json()["data"]
        assert listed == [{name: value for name, value in link.items() if name != "path"}]
        with psycopg.connect(libpq_url(service.database_url)) as connection:
            (kept,) = connection.execute("SELECT digest, share_links::text FROM share_links").fetchall()
        assert kept[0] == hashlib.sha256(b"share link\0" + token.encode()).digest()
        assert token not in kept[1]
        assert service.log is None or token not in service.log.read_text()

    def test_says_nothing_of_another_job_that_a_threshold_names(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        other = service.submit(job_body(name="another"), headers=keys["submit"])["id"]
        link = made(service, job, keys["submit"])
        for threshold, is_shown in (
            ("acc_atom>=0.8", True),
            (f"acc_atom not worse than {other} by 0.03", False),
        ):
            service.execute(
                "UPDATE jobs SET request = request || jsonb_build_object('thresholds', jsonb_build_array(%s::text))"
                " WHERE id = %s",
                threshold,
                job,
            )
            own = service.get(f"/v1/jobs/{job}/report?format=html", headers=keys["read"]).text
            shared = seen(service, f"{link['path']}/report.html").text
            assert ("thresholds-title" in own, "thresholds-title" in shared) == (True, is_shown)
            assert (other in own, other in shared) == (not is_shown, False)

    def test_gives_all_responses_only_if_it_says_so(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        link = made(service, job, keys["submit"], responses=True)
        for file in (*FILES, *RESPONSES):
            assert seen(service, f"{link['path']}/{file}").status_code == 200, file

    def test_opens_nothing_else(self, service: Service, keys: dict[str, Headers], job: str) -> None:
        link = made(service, job, keys["submit"])
        token = link["path"].removeprefix("/shared/")
        other = service.submit(job_body(name="another"), headers=keys["submit"])["id"]
        for path in ("/v1/jobs", f"/v1/jobs/{job}", f"/v1/jobs/{job}/results", f"/v1/jobs/{job}/share-links"):
            assert service.get(path, headers=bearer(token)).status_code == 401
            assert service.http.get(path).status_code == 401
        for path in ("/", f"/jobs/{job}", f"/jobs/{job}/responses"):
            answer = httpx2.get(
                f"{service.url}{path}",
                headers=BROWSER | {"Cookie": f"assay_session={token}", "Referer": link["path"]},
                trust_env=False,
            )
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/sign-in")
        for rest in (
            f"/../jobs/{other}",
            f"/..%2f..%2fjobs%2f{other}",
            f"/%2e%2e/%2e%2e/jobs/{other}",
            f"/{other}",
            "/report.html/../../../jobs",
            "/report.junit",
            "/parquet",
            "/",
            "//",
        ):
            answer = seen(service, f"{link['path']}{rest}")
            assert answer.status_code in {303, 404, 422}, rest
            assert "another" not in answer.text
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            assert service.http.request(method, link["path"]).status_code == 405
        assert seen(service, f"{link['path']}?job={other}").status_code == 422

    def test_ends_by_itself_by_being_revoked_and_with_its_job(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        expired, revoked, living = (made(service, job, keys["submit"]) for _ in range(3))
        service.execute("UPDATE share_links SET expires_at = now() WHERE id = %s", expired["id"])
        place = f"/v1/jobs/{job}/share-links/{revoked['id']}"
        assert service.http.delete(place, headers=keys["read"]).status_code == 403
        assert service.http.delete(place, headers=keys["other"]).status_code == 404
        assert seen(service, revoked["path"]).status_code == 200
        ended = service.http.delete(place, headers=keys["submit"]).json()
        assert service.http.delete(place, headers=keys["submit"]).json() == ended, "the first time counts"
        unknown = seen(service, f"/shared/{compose(POSSIBLE - 1)}")
        for link in (expired, revoked):
            for rest in ("", *(f"/{file}" for file in FILES)):
                answer = seen(service, f"{link['path']}{rest}")
                assert answer.status_code == 404
                assert "a secret plan" not in answer.text
            told = seen(service, link["path"])
            assert without_request(told.text) == without_request(unknown.text), "which it was is not said"
        listed = service.get(f"/v1/jobs/{job}/share-links", headers=keys["read"]).json()["data"]
        assert [link["status"] for link in listed] == ["live", "revoked", "expired"]
        assert seen(service, living["path"]).status_code == 200
        service.execute("DELETE FROM jobs WHERE id = %s", job)
        assert seen(service, living["path"]).status_code == 404

    @pytest.mark.parametrize(
        "token",
        [
            "",
            "x",
            "assay_" + "0" * 50,
            "%00",
            "%2e%2e%2fv1%2fjobs",
            "assay_%ff",
            "a" * 9000,
            "' OR 1=1 --",
        ],
    )
    def test_is_not_guessed(self, service: Service, token: str) -> None:
        assert seen(service, f"/shared/{token}").status_code == 404
        assert seen(service, f"/shared/{token}/results.json").status_code == 404

    def test_is_asked_so_often_and_no_more(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        link, other = made(service, job, keys["submit"]), made(service, job, keys["submit"])
        with httpx2.Client(
            base_url=service.url, headers=BROWSER, timeout=PATIENCE, trust_env=False
        ) as client:
            answers = [client.get(link["path"]) for _ in range(40)]
            refused = [answer for answer in answers if answer.status_code == 429]
            assert refused
            assert int(refused[0].headers["retry-after"]) >= 1
            assert client.get(other["path"]).status_code == 200


class TestWho:
    def test_may_make_one(self, service: Service, keys: dict[str, Headers], job: str) -> None:
        place = f"/v1/jobs/{job}/share-links"
        assert service.post(place, {}, headers=keys["read"]).status_code == 403
        assert service.post(place, {}, headers=keys["other"]).status_code == 404
        assert service.get(place, headers=keys["other"]).status_code == 404
        assert send(service, f"/jobs/{job}/share", keys["read"], {"days": "1"}).status_code == 403
        assert send(service, f"/jobs/{job}/share", keys["other"], {"days": "1"}).status_code == 404
        assert service.count("SELECT count(*) FROM share_links") == 0

    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"days": 0}, "/days"),
            ({"days": 366}, "/days"),
            ({"days": "2"}, "/days"),
            ({"responses": 1}, "/responses"),
            ({"description": "a\nb"}, "/description"),
            ({"description": "\0"}, "/description"),
            ({"tenant": "other"}, "/tenant"),
        ],
    )
    def test_a_body_that_is_wrong_is_told(
        self, service: Service, keys: dict[str, Headers], job: str, body: Json, pointer: str
    ) -> None:
        answer = service.post(f"/v1/jobs/{job}/share-links", body, headers=keys["submit"])
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]

    def test_a_job_has_so_many_living_ones_and_no_more(
        self, service: Service, keys: dict[str, Headers], job: str
    ) -> None:
        links = [made(service, job, keys["submit"]) for _ in range(50)]
        answer = service.post(f"/v1/jobs/{job}/share-links", {}, headers=keys["submit"])
        assert answer.status_code == 422
        service.http.delete(f"/v1/jobs/{job}/share-links/{links[0]['id']}", headers=keys["submit"])
        made(service, job, keys["submit"])


class TestPage:
    def test_makes_lists_and_revokes(self, service: Service, keys: dict[str, Headers], job: str) -> None:
        place, key = f"/jobs/{job}/share", keys["submit"]
        form = {"days": "3", "responses": "true", "description": "<reviewers>"}
        answer = send(service, place, key, form)
        assert answer.status_code == 200
        (address,) = re.findall(r"http://[^<\s]+/shared/assay_\w{50}", answer.text)
        assert seen(service, address.removeprefix(service.url) + "/responses.jsonl").status_code == 200
        page = httpx2.get(f"{service.url}{place}", headers=BROWSER | key, trust_env=False).text
        assert "&lt;reviewers&gt;" in page
        assert "/shared/" not in page
        (revoke,) = re.findall(r'action="(/jobs/\w+/share/\w+/revoke)"', page)
        assert send(service, revoke, keys["other"]).status_code == 404
        assert send(service, revoke, keys["read"]).status_code == 403
        assert send(service, revoke, key).status_code == 303
        assert seen(service, address.removeprefix(service.url)).status_code == 404

    def test_says_what_is_wrong(self, service: Service, keys: dict[str, Headers], job: str) -> None:
        for days in ("", "0", "x", "9" * 5000):
            answer = send(service, f"/jobs/{job}/share", keys["submit"], {"days": days})
            assert answer.status_code == 422
            assert "<li>Days" in answer.text


def test_the_command_makes_lists_and_revokes(api: Service) -> None:
    job = api.submit(job_body())["id"]
    run = CliRunner().invoke
    shared = run(cli, ["share", job, "--days", "2", "--for", "reviewers", "--url", api.url])
    assert shared.exit_code == 0, shared.output
    address = shared.stdout.strip()
    assert address.startswith(f"{api.url}/shared/assay_")
    assert look(api, address.removeprefix(api.url)).status_code == 200
    listed = run(cli, ["share", job, "--list", "--json", "--url", api.url])
    (link,) = json.loads(listed.stdout)["data"]
    assert (link["description"], link["responses"]) == ("reviewers", False)
    assert "for reviewers" in run(cli, ["share", job, "--list", "--url", api.url]).stdout
    assert run(cli, ["share", job, "--revoke", link["id"], "--url", api.url]).stdout == (
        f"{link['id']} is revoked\n"
    )
    assert look(api, address.removeprefix(api.url)).status_code == 404
    assert post(api, f"/jobs/{job}/share", {"days": "1"}).status_code == 200


def without_request(page: str) -> str:
    return re.sub(r"req_\w+", "", page)
