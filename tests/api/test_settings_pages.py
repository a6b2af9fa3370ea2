"""The console's pages of connections: who sees and does what there."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

import httpx2
import pytest

from app.api.console.forms import FORM_TYPE
from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import KeyMaker, bearer, guarded
from tests.api.service import Service
from tests.api.test_connections import KEY, PUBLIC
from tests.api.test_pages import BROWSER
from tests.conftest import scratch_directory
from tests.databases import Databases

Headers = dict[str, str]


@pytest.fixture(scope="module")
def service(databases: Databases, template_database: str) -> Iterator[Service]:
    with (
        databases.new("settings", template=template_database) as url,
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as valkey,
        guarded(directory, url, valkey.url(), ASSAY_ENCRYPTION_KEYS="ab" * 32) as running,
    ):
        yield running


@pytest.fixture
def keys(service: Service) -> Iterator[dict[str, Headers]]:
    """A header for each scope, and one for an administrator of another tenant."""
    maker = KeyMaker(service.database_url)
    made = {scope.value: bearer(maker.make(scope)) for scope in Scope}
    yield made | {"other": bearer(maker.make(Scope.ADMIN, tenant="other"))}
    service.empty("api_keys", "connections", "webhooks")


def look(service: Service, path: str, key: Headers) -> httpx2.Response:
    return httpx2.get(f"{service.url}{path}", headers=BROWSER | key, timeout=60, trust_env=False)


def send(
    service: Service, path: str, key: Headers, form: Mapping[str, str | list[str]] | None = None
) -> httpx2.Response:
    """What a browser gets that sends a form from one of our own pages."""
    headers = BROWSER | key | {"Sec-Fetch-Site": "same-origin", "Content-Type": FORM_TYPE}
    content = urlencode(form or {}, doseq=True)
    return httpx2.post(f"{service.url}{path}", content=content, headers=headers, timeout=60, trust_env=False)


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
