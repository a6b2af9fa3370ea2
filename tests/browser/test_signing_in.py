"""Signing in with an API key and out again, in a real browser, before a service that asks for keys."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.domain.keys.api_key import Scope
from embedded.valkey import EmbeddedValkey
from tests.api.keys import PEPPER, KeyMaker
from tests.browser.watching import Watcher, barriers, overflow
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, running_stack


@pytest.fixture(scope="module")
def guarded(
    chromium: str, databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> Iterator[tuple[Stack, Json]]:
    """A service that asks for keys, and one of them."""
    with databases.new("signing", template=template_database) as url, scratch_directory() as directory:
        key = KeyMaker(url).make(Scope.SUBMIT)
        variables = {"ASSAY_KEY_PEPPER": PEPPER}
        with running_stack(directory, database_url=url, redis_url=valkey.url(), environment=variables) as run:
            yield run, key


@pytest.fixture
def stack(guarded: tuple[Stack, Json]) -> Stack:
    return guarded[0]


@pytest.fixture
def key(guarded: tuple[Stack, Json]) -> str:
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
