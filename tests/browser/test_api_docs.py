"""`/docs` under its policy in a real browser: Swagger UI works, and no script of anybody else's does.

The page's watcher fails each test whose page breaks its policy: that is an error in the console.
"""

from playwright.sync_api import Page, expect

from tests.browser.watching import Watcher, runs_strange_script


class TestDocs:
    def test_every_operation_is_shown_with_its_words(self, page: Page) -> None:
        page.goto("/docs")
        submit = page.locator(".opblock-post", has=page.locator("[data-path='/v1/jobs']"))
        submit.locator(".opblock-summary-control").click()
        expect(submit.locator(".opblock-body")).to_contain_text("It runs in the background")
        assert page.locator(".opblock").count() > 40
        expect(page.locator("html")).to_have_attribute("lang", "en")

    def test_an_operation_is_tried_and_its_answer_shown(self, page: Page) -> None:
        page.goto("/docs")
        tasks = page.locator(".opblock-get", has=page.locator("[data-path='/v1/tasks']"))
        tasks.locator(".opblock-summary-control").click()
        tasks.get_by_role("button", name="Execute").click()
        expect(tasks.locator(".live-responses-table tbody .response-col_status").first).to_contain_text("200")

    def test_a_script_of_somebody_else_does_not_run(self, page: Page, watcher: Watcher) -> None:
        page.goto("/docs")
        expect(page.locator(".opblock").first).to_be_visible()
        assert not runs_strange_script(page)
        watcher.expect("Content Security Policy")
