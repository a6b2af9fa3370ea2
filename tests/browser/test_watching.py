"""The tests' own eyes: a page that does what it must not is told on."""

import pytest
from playwright.sync_api import Page, Route

from tests.browser.watching import Watcher, barriers, overflow

ORIGIN = "http://own.example"


@pytest.fixture
def watcher() -> Watcher:
    """For a page of no service: the test answers its requests itself."""
    return Watcher(ORIGIN)


def show(page: Page, markup: str) -> None:
    def answer(route: Route) -> None:
        is_page = route.request.url == f"{ORIGIN}/"
        route.fulfill(
            status=200 if is_page else 404, content_type="text/html", body=markup if is_page else ""
        )

    page.route(f"{ORIGIN}/**", answer)
    page.goto("/")


class TestWatcher:
    @pytest.mark.parametrize(
        ("markup", "complaint"),
        [
            ("<script>console.error('broken')</script>", "error: broken"),
            ("<script>throw new Error('thrown')</script>", "exception: thrown"),
            (
                "<img src='http://elsewhere.example/pixel.png'>",
                "elsewhere: http://elsewhere.example/pixel.png",
            ),
            ("<img src='/none.png'>", "404"),
        ],
    )
    def test_tells_what_a_page_must_not_do(
        self, page: Page, watcher: Watcher, markup: str, complaint: str
    ) -> None:
        show(page, f"<link rel=icon href='data:,'>{markup}")
        watcher.expect(complaint)
        watcher.complaints.clear()  # an image that was not sent for is an error in the console besides


class TestLooks:
    def test_axe_finds_what_cannot_be_read_and_leaves_what_can(self, page: Page) -> None:
        head = "<html lang=en><title>t</title><link rel=icon href='data:,'>"
        show(page, f"{head}<main><h1 style='color:#eee;background:#fff'>pale</h1></main>")
        assert [line for line in barriers(page) if "color-contrast" in line]
        page.evaluate("document.querySelector('h1').style = ''")
        assert barriers(page) == []

    def test_what_is_wider_than_the_window_is_measured(self, page: Page) -> None:
        show(page, "<link rel=icon href='data:,'><p style='margin: 0; width: 1500px'>wide")
        assert overflow(page) > 200
        page.evaluate("document.querySelector('p').style = ''")
        assert overflow(page) == 0
