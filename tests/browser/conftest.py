"""A real browser before a real service. Without Chromium on the machine these tests are skipped.

`TEST_CHROMIUM` names the browser's executable; unless set, it is looked for on the PATH.
"""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.watching import Watcher
from tests.e2e.stack import Stack

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
WINDOW_WIDTH, WINDOW_HEIGHT = 1280, 900
PATIENCE_MILLISECONDS = 60_000
"""On a busy machine all that a page waits for may take long."""

expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the machine's own browser."""
    set_to = os.environ.get("TEST_CHROMIUM")
    found = shutil.which(set_to) if set_to else next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if found is None:
        tried = set_to or ", ".join(EXECUTABLES)
        pytest.skip(f"no browser (tried: {tried}); set TEST_CHROMIUM to a Chromium's executable")
    return found


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless Chromium.

    For a module, no longer: while Playwright runs, its event loop is the thread's, and no other test can have one.
    """
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def stack(chromium: str, common_stack: Stack) -> Iterator[Stack]:
    """A running service; what a module's tests set in its simulator ends with the module.

    Where there is no browser to look at it, none is started.
    """
    with common_stack.simulator_restored():
        yield common_stack


@pytest.fixture
def watcher(stack: Stack) -> Watcher:
    """Collects what the test's page does that it must not."""
    return Watcher(str(stack.api.base_url).rstrip("/"))


@pytest.fixture
def page(browser: Browser, watcher: Watcher) -> Iterator[Page]:
    """A page of the service, with a profile of its own; paths are relative to the service's address.

    The test fails at its end if the page logged an error, raised one, or asked another origin for anything.
    """
    context = browser.new_context(
        base_url=watcher.origin,
        viewport={"width": WINDOW_WIDTH, "height": WINDOW_HEIGHT},
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    opened = context.new_page()
    watcher.watch(context, opened)
    yield opened
    context.close()
    assert watcher.complaints == []
