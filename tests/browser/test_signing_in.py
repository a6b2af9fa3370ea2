"""Signing in with an API key and out again, in a real browser, before a service that asks for keys."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER, KeyMaker
from tests.browser.watching import Watcher, barriers, looks_right, overflow
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, running_stack


@pytest.fixture(scope="module")
def guarded(
    chromium: str, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> Iterator[tuple[Stack, Json, Json]]:
    """A service that asks for keys, and two of them: one that submits, and an administrator's."""
    with databases.new("signing", template=template_database) as url, scratch_directory() as directory:
        key, administrator = KeyMaker(url).make(Scope.SUBMIT), KeyMaker(url).make(Scope.ADMIN)
        variables = {"ASSAY_KEY_PEPPER": PEPPER}
        with running_stack(directory, database_url=url, redis_url=valkey.url(), environment=variables) as run:
            yield run, key, administrator


@pytest.fixture
def stack(guarded: tuple[Stack, Json, Json]) -> Stack:
    return guarded[0]


@pytest.fixture
def key(guarded: tuple[Stack, Json, Json]) -> str:
    return str(guarded[1]["key"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_person_signs_in_sees_what_he_wanted_and_signs_out(
    page: Page, watcher: Watcher, key: str, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto("/compare")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert barriers(page) == []
    assert overflow(page) == 0

    page.get_by_label("Your API key").fill(key[:-1])
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("An API key is assay_ followed by 50 letters and digits.")
    assert barriers(page) == []
    watcher.expect("401")

    page.get_by_label("Your API key").fill(key)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/compare$"))
    assert page.evaluate("document.cookie") == ""
    assert barriers(page) == []

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/sign-in\?next="))


@pytest.fixture
def administrator(guarded: tuple[Stack, Json, Json]) -> str:
    return str(guarded[2]["key"])


def test_a_key_is_made_seen_once_and_revoked(page: Page, administrator: str) -> None:
    page.goto("/keys")
    page.get_by_label("Your API key").fill(administrator)
    page.keyboard.press("Enter")
    looks_right(page)
    page.get_by_label("Name").fill("nightly runs")
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#made code")).to_have_text(re.compile("^assay_[0-9A-Za-z]{50}$"))
    assert barriers(page) == []
    page.goto("/keys")
    made = page.get_by_role("listitem").filter(has_text="nightly runs")
    made.get_by_text("Revoke …").click()
    made.get_by_role("button", name="Revoke this key").click()
    expect(made.get_by_text("revoked", exact=True)).to_be_visible()
