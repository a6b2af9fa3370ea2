"""The console: every page in a real browser, before a real service."""

from playwright.sync_api import Page, expect

from tests.browser.watching import barriers, overflow
from tests.e2e.stack import Json, Stack

SMALL: Json = {
    "name": "A small one",
    "personas": ["E-high"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1],
    "iterations": 2,
}


class TestJobs:
    def test_one_appears_moves_and_ends_without_a_reload(self, page: Page, stack: Stack) -> None:
        page.goto("/")
        expect(page.get_by_text("No jobs yet.")).to_be_visible()
        page.evaluate("window.here = true")
        stack.simulate(latency_ms=300)
        job = stack.submit(SMALL)
        shown = page.get_by_role("listitem").filter(has_text="A small one")
        expect(shown.get_by_text("running")).to_be_visible()
        expect(shown.get_by_text("simulated", exact=True)).to_be_visible()
        stack.simulate(latency_ms=1)
        expect(shown.get_by_text("completed")).to_be_visible()
        counts = [stack.ended(job)["progress"][stage]["total"] for stage in ("generation", "judging")]
        expect(shown).to_contain_text(f"{sum(counts)} of {sum(counts)}")
        assert page.evaluate("window.here")
        assert barriers(page) == []
        assert overflow(page) == 0

    def test_a_name_from_outside_stays_text_and_in_its_place(self, page: Page, stack: Stack) -> None:
        name = "<script>alert(1)</script> \u202e" + "x" * 250
        stack.submit(SMALL | {"name": name})
        page.set_viewport_size({"width": 380, "height": 800})
        page.goto("/")
        expect(page.get_by_role("link", name="<script>alert(1)</script>")).to_have_text(name)
        assert overflow(page) == 0

    def test_pages_and_states_are_in_the_address(self, page: Page, stack: Stack) -> None:
        for number in range(21):
            stack.submit(SMALL | {"name": f"Number {number}", "iterations": 1})
        page.goto("/")
        expect(page.get_by_role("link", name="Number 1", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="Number 0", exact=True)).to_have_count(0)
        page.get_by_role("link", name="Older").click()
        expect(page.get_by_role("link", name="Number 0", exact=True)).to_be_visible()
        page.get_by_role("link", name="completed").click()
        expect(page).to_have_url("/?status=completed")
        page.get_by_role("link", name="cancelled").click()
        expect(page.get_by_text("No such jobs.")).to_be_visible()
