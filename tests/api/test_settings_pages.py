"""The console's pages of connections, webhooks and keys: who sees and does what there."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlencode

import httpx2
import pytest

from app.api.console.forms import FORM_TYPE
from app.domain.keys.api_key import Scope
from tests.api.keys import KeyMaker, bearer, guarded_alone
from tests.api.service import Service
from tests.api.test_connections import KEY, PUBLIC
from tests.api.test_pages import BROWSER
from tests.databases import Databases
from tests.observe import PATIENCE

Headers = dict[str, str]
HOOK = "https://93.184.215.14/hooks"


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with guarded_alone(databases, template_database, "settings", ASSAY_ENCRYPTION_KEYS="ab" * 32) as running:
        yield running


@pytest.fixture
def keys(service: Service) -> Iterator[dict[str, Headers]]:
    """A header for each scope, and one for an administrator of another tenant."""
    maker = KeyMaker(service.database_url)
    made = {scope.value: bearer(maker.make(scope)) for scope in Scope}
    yield made | {"other": bearer(maker.make(Scope.ADMIN, tenant="other"))}
    service.empty("api_keys", "connections", "webhooks")


def look(service: Service, path: str, key: Headers) -> httpx2.Response:
    return httpx2.get(f"{service.url}{path}", headers=BROWSER | key, timeout=PATIENCE, trust_env=False)


def send(
    service: Service, path: str, key: Headers, form: Mapping[str, str | list[str]] | None = None
) -> httpx2.Response:
    """What a browser gets that sends a form from one of our own pages."""
    headers = BROWSER | key | {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM_TYPE}
    content = urlencode(form or {}, doseq=True)
    return httpx2.post(
        f"{service.url}{path}", content=content, headers=headers, timeout=PATIENCE, trust_env=False
    )


class TestConnections:
    def test_each_sees_what_the_api_shows_it_and_nobody_a_key(
        self, service: Service, keys: dict[str, Headers]
    ) -> None:
        body = {"name": "lab", "kind": "openai", "base_url": PUBLIC, "api_key": KEY}
        assert service.post("/v1/connections", body, headers=keys["admin"]).status_code == 201
        pages = {name: look(service, "/connections", key) for name, key in keys.items()}
        assert {page.status_code for page in pages.values()} == {200}
        for name, page in pages.items():
            assert KEY not in page.text
            assert (PUBLIC in page.text) == (name == "admin")
            assert (">lab<" in page.text) == (name != "other")
            assert ">acme<" in page.text

    def test_keys_are_tried_and_models_called_by_who_may_spend(
        self, service: Service, keys: dict[str, Headers]
    ) -> None:
        assert send(service, "/connections", keys["read"]).status_code == 403
        tried = send(service, "/connections", keys["submit"])
        assert tried.status_code == 200
        assert "Nothing listens at 127.0.0.1:9" in tried.text
        tested = send(service, "/connections", keys["submit"], {"connection": "acme", "model": "acme-1"})
        assert "Nothing listens at 127.0.0.1:9 (connection_failed)" in tested.text
        assert "costs $1.00 per million input" in tested.text

    @pytest.mark.parametrize(
        "form",
        [
            {"connection": "none", "model": "x"},
            {"connection": "acme", "model": ""},
            {"connection": "acme", "model": "\0"},
            {"connection": "\0"},
            {"connection": "acme/acme-1"},
            {"connection": "a" * 5000, "model": "x"},
        ],
    )
    def test_what_is_no_model_is_told(
        self, service: Service, keys: dict[str, Headers], form: dict[str, str]
    ) -> None:
        assert send(service, "/connections", keys["submit"], form).status_code == 200

    def test_a_page_of_another_site_tries_nothing(self, service: Service, keys: dict[str, Headers]) -> None:
        headers = BROWSER | keys["submit"] | {"Sec-Fetch-Site": "cross-site"}
        answer = httpx2.post(f"{service.url}/connections", headers=headers, trust_env=False)
        assert answer.status_code == 403


class TestKeys:
    def test_only_administrators_have_the_page_and_a_link_to_it(
        self, service: Service, keys: dict[str, Headers]
    ) -> None:
        for name in ("read", "submit"):
            assert look(service, "/keys", keys[name]).status_code == 403
            assert send(service, "/keys", keys[name], {"name": "x", "scope": "read"}).status_code == 403
            assert 'href="/keys"' not in look(service, "/connections", keys[name]).text
        assert 'href="/keys"' in look(service, "/connections", keys["admin"]).text

    def test_a_key_is_shown_once_works_and_ends(self, service: Service, keys: dict[str, Headers]) -> None:
        form = {"name": "<ci> & co", "scope": "submit", "days": "30", "usd_limit": "5"}
        made = send(service, "/keys", keys["admin"], form | {"requests_per_minute": "600"})
        assert made.status_code == 200
        (key,) = re.findall(r"assay_[0-9A-Za-z]{50}", made.text)
        assert made.headers["cache-control"] == "no-store"
        assert "&lt;ci&gt; &amp; co" in made.text
        assert service.get("/v1/jobs", headers=bearer(key)).status_code == 200
        shown = look(service, "/keys", keys["admin"]).text
        assert key not in shown
        assert key[:18] in shown
        assert "600 requests per minute" in shown
        newest = service.get("/v1/api-keys", headers=keys["admin"]).json()["data"][0]
        assert newest["scopes"] == ["submit"]
        ends = datetime.fromisoformat(newest["expires_at"]) - datetime.fromisoformat(newest["created_at"])
        assert abs(ends - timedelta(days=30)) < timedelta(minutes=5)
        place = f"/keys/{newest['id']}/revoke"
        for other in ("read", "submit"):
            assert send(service, place, keys[other]).status_code == 403
        assert send(service, place, keys["other"]).status_code == 404
        assert service.get("/v1/jobs", headers=bearer(key)).status_code == 200
        assert send(service, place, keys["admin"]).status_code == 303
        assert service.get("/v1/jobs", headers=bearer(key)).status_code == 401
        assert "Revoke this key" in look(service, "/keys", keys["admin"]).text
        assert newest["id"] not in look(service, "/keys", keys["other"]).text

    @pytest.mark.parametrize(
        ("form", "words"),
        [
            ({"name": "", "scope": "read"}, "Name"),
            ({"name": "x\0", "scope": "read"}, "Name"),
            ({"name": "x", "scope": "root"}, "Scopes 1"),
            ({"name": "x", "scope": "read", "days": "-1"}, "Expires at"),
            ({"name": "x", "scope": "read", "days": "9" * 400}, "Expires at"),
            ({"name": "x", "scope": "read", "usd_limit": "much"}, "Spending, usd limit"),
            ({"name": "x", "scope": "read", "usd_limit": "nan"}, "Spending, usd limit"),
            ({"name": "x", "scope": "read", "requests_per_minute": "0"}, "Requests per minute"),
        ],
    )
    def test_what_is_wrong_is_told(
        self, service: Service, keys: dict[str, Headers], form: dict[str, str], words: str
    ) -> None:
        answer = send(service, "/keys", keys["admin"], form)
        assert answer.status_code == 422
        assert re.search(rf'role="alert".*<li>{re.escape(words)}', answer.text, re.DOTALL), answer.text

    def test_a_limited_administrator_makes_no_freer_key(
        self, service: Service, keys: dict[str, Headers]
    ) -> None:
        limited = bearer(KeyMaker(service.database_url).make(Scope.ADMIN, usd=3))
        answer = send(service, "/keys", limited, {"name": "x", "scope": "submit"})
        assert answer.status_code == 422
        assert 'role="alert"' in answer.text


class TestWebhooks:
    def test_one_is_made_tested_switched_off_and_deleted(
        self, service: Service, keys: dict[str, Headers]
    ) -> None:
        form: dict[str, str | list[str]] = {"url": HOOK, "event": ["job.completed", "job.failed"]}
        assert send(service, "/webhooks", keys["submit"], form).status_code == 403
        made = send(service, "/webhooks", keys["admin"], form)
        assert made.status_code == 200
        (secret,) = re.findall(r"whsec_[0-9A-Za-z+/=]+", made.text)
        (hook,) = service.get("/v1/webhooks", headers=keys["read"]).json()["data"]
        assert hook["events"] == ["job.completed", "job.failed"]
        place = f"/webhooks/{hook['id']}"
        shown = look(service, place, keys["read"])
        assert shown.status_code == 200
        assert secret not in shown.text
        assert "Send a test" not in shown.text
        for deed in ("test", "off", "on", "rotate", "delete"):
            assert send(service, f"{place}/{deed}", keys["submit"]).status_code == 403
            assert send(service, f"{place}/{deed}", keys["other"]).status_code == 404
        assert send(service, f"{place}/test", keys["admin"]).status_code == 303
        assert "webhook.test" in look(service, place, keys["read"]).text
        assert send(service, f"{place}/off", keys["admin"]).status_code == 303
        assert "given up" in look(service, place, keys["read"]).text
        assert send(service, f"{place}/test", keys["admin"]).status_code == 409
        assert send(service, f"{place}/on", keys["admin"]).status_code == 303
        (other,) = re.findall(r"whsec_[\w+/=]+", send(service, f"{place}/rotate", keys["admin"]).text)
        assert other != secret
        assert send(service, f"{place}/else", keys["admin"]).status_code == 422
        assert send(service, f"{place}/delete", keys["admin"]).status_code == 303
        assert look(service, place, keys["read"]).status_code == 404
        assert "No webhooks yet." in look(service, "/webhooks", keys["read"]).text

    @pytest.mark.parametrize(
        ("form", "words"),
        [
            ({"url": "", "event": "job.failed"}, "Url"),
            ({"url": HOOK}, "Events"),
            ({"url": HOOK, "event": "job.odd"}, "Events 1"),
            ({"url": "http://127.0.0.1/x", "event": "job.failed"}, "Url"),
            ({"url": HOOK, "event": "job.failed", "description": "a\0"}, "Description"),
        ],
    )
    def test_what_is_wrong_is_told(
        self, service: Service, keys: dict[str, Headers], form: dict[str, str], words: str
    ) -> None:
        answer = send(service, "/webhooks", keys["admin"], form)
        assert answer.status_code == 422
        assert re.search(rf'role="alert".*<li>{re.escape(words)}', answer.text, re.DOTALL), answer.text
