"""The labelling page: what people see and say there, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.watching import Watcher, barriers, overflow, unreached
from tests.e2e.stack import Json, Stack

HOSTILE = "<script>alert(1)</script> \u202eI hide " + "x" * 600 + "."
JOB: Json = {
    "name": "to be labelled",
    "personas": ["E-high", "E-low"],
    "tasks": ["social_media_post"],
    "responses": [
        *[
            {
                "persona": persona,
                "task": "social_media_post",
                "model": "our-secret-bot",
                "text": f"I danced until four on day {n}. I hid from everybody on day {n}. {more}",
            }
            for persona, n, more in (("E-high", 1, HOSTILE), ("E-low", 2, ""), ("E-low", 3, "Rain fell."))
        ],
    ],
    "judges": ["simulated/sim-judge"],
}


@pytest.fixture(scope="module")
def job(stack: Stack) -> str:
    job_id = stack.submit(JOB)
    stack.ended(job_id)
    return job_id


class Draw:
    """Draws rounds and reads what was said of them."""

    def __init__(self, stack: Stack, job: str) -> None:
        self._api, self._job = stack.api, job

    def round(self, kind: str, seed: int) -> Json:
        body = {"job": self._job, "kind": kind, "dimension": "E", "size": 5, "seed": seed}
        made = self._api.post("/v1/labelling-rounds", json=body)
        assert made.status_code == 201, made.text
        found: Json = made.json()
        return found

    def said(self, annotator: str) -> list[Json]:
        found: list[Json] = self._api.get("/v1/annotations", params={"annotator": annotator}).json()["data"]
        return found


@pytest.fixture
def drawing(stack: Stack, job: str) -> Draw:
    return Draw(stack, job)


def begin(page: Page, path: str, name: str) -> None:
    page.goto(path)
    page.get_by_label("Your name or initials").fill(name)
    page.get_by_role("button", name="Start").click()


class TestRounds:
    def test_are_drawn_and_found_from_the_jobs_page(self, page: Page, job: str) -> None:
        page.goto(f"/jobs/{job}")
        page.get_by_role("link", name="Human labels").click()
        page.get_by_label("What to rate").select_option("pairs")
        page.get_by_label("Size").fill("3")
        page.get_by_role("button", name="Create round").click()
        row = page.get_by_role("row", name="3 pairs")
        expect(row).to_contain_text("none yet")
        row.get_by_role("link").click()
        page.get_by_label("Your name or initials").fill("fred")
        page.keyboard.press("Enter")
        expect(page.get_by_text("0 of 3 answered")).to_be_visible()
        page.keyboard.press("=")
        expect(page.get_by_text("1 of 3 answered")).to_be_visible()
        page.goto(f"/jobs/{job}/labels")
        expect(row).to_contain_text("fred 1")
        assert barriers(page) == []

    def test_a_field_that_is_wrong_is_told(self, page: Page, job: str, watcher: Watcher) -> None:
        page.goto(f"/jobs/{job}/labels")
        page.get_by_label("Size").fill("5000")
        page.get_by_role("button", name="Create round").click()
        expect(page.get_by_text("Size:")).to_be_visible()
        watcher.expect("422")


class TestSentences:
    def test_are_scored_by_keys_and_each_score_is_kept_at_once(self, page: Page, drawing: Draw) -> None:
        made = drawing.round("sentences", 0)
        begin(page, made["links"]["page"], "anna")
        expect(page.get_by_text("0 of 5 answered")).to_be_visible()
        expect(page.get_by_text("People with an extroverted personality are")).to_be_visible()
        assert barriers(page) == []
        assert unreached(page) == []
        page.keyboard.press("4")
        expect(page.get_by_text("1 of 5 answered")).to_be_visible()
        page.reload()
        expect(page.get_by_text("1 of 5 answered")).to_be_visible()
        assert [each["score"] for each in drawing.said("anna")] == [4]
        page.keyboard.press("Backspace")
        expect(page.locator("[aria-current]", has_text="4")).to_be_visible()
        page.keyboard.press("5")
        expect(page.get_by_text("1 of 5 answered")).to_be_visible()
        assert [each["score"] for each in drawing.said("anna")] == [5]
        for n in range(2, 6):
            page.keyboard.press("9")
            expect(page.get_by_text(f"{n} of 5 answered")).to_be_visible()
        expect(page.get_by_role("heading", name="All done")).to_be_visible()
        assert [each["score"] for each in drawing.said("anna")] == [5] + ["not_applicable"] * 4

    def test_neither_names_nor_scores_are_in_the_page(self, page: Page, drawing: Draw, job: str) -> None:
        made = drawing.round("sentences", 1)
        page.goto(f"{made['links']['page']}?annotator=carl")
        shown = page.content()
        for hidden in ("our-secret-bot", "sim-judge", "E-high", "E-low", "to be labelled", job):
            assert hidden not in shown

    def test_a_hostile_one_stays_text_and_in_its_place(self, page: Page, drawing: Draw) -> None:
        made = drawing.round("sentences", 2)
        page.set_viewport_size({"width": 380, "height": 800})
        seen = []
        for at in range(1, 6):
            page.goto(f"{made['links']['page']}?annotator=dora&at={at}")
            seen.append(page.locator("blockquote").inner_text())
            assert overflow(page) == 0
            assert barriers(page) == []
        assert len(set(seen)) == 5

    def test_everybody_sees_the_same_in_an_order_of_his_own(self, page: Page, drawing: Draw) -> None:
        made = drawing.round("sentences", 0)
        orders = []
        for name in ("one", "two", "three"):
            order = []
            for at in range(1, 6):
                page.goto(f"{made['links']['page']}?annotator={name}&at={at}")
                order.append(page.locator("blockquote").inner_text())
            orders.append(order)
        assert len({tuple(sorted(order)) for order in orders}) == 1
        assert len({tuple(order) for order in orders}) > 1

    def test_a_name_that_would_be_a_formula_is_asked_for_again(self, page: Page, drawing: Draw) -> None:
        path = drawing.round("sentences", 0)["links"]["page"]
        page.goto(f"{path}?annotator=%3D1%2B1")
        expect(page.get_by_text("Start with a letter or digit")).to_be_visible()
        assert barriers(page) == []
        assert unreached(page) == []


class TestPairs:
    def test_are_chosen_from_by_arrow_keys_whichever_side_a_sentence_is_on(
        self, page: Page, drawing: Draw
    ) -> None:
        made = drawing.round("pairs", 0)
        begin(page, made["links"]["page"], "ben")
        expect(page.get_by_role("heading")).to_contain_text("Very extroverted")
        expect(page.get_by_text("People with an extroverted personality are")).to_be_visible()
        assert barriers(page) == []
        count = made["n"]
        chosen = []
        for n in range(1, count + 1):
            buttons = page.locator("button.sentence bdi")
            left, right = buttons.nth(0).inner_text(), buttons.nth(1).inner_text()
            choice = "ArrowLeft" if "danced" in left else "ArrowRight" if "danced" in right else "="
            chosen.append(choice)
            page.keyboard.press(choice)
            expect(page.get_by_text(f"{n} of {count} answered")).to_be_visible()
        said = drawing.said("ben")
        assert len(said) == count
        assert [each["preferred"] == "equal" for each in said] == [choice == "=" for choice in chosen]
        for each in said:  # unit 0 is the one that danced
            first, second = each["unit"], each["other_unit"]
            if each["preferred"] != "equal" and 0 in (first, second) and first != second:
                assert each["preferred"] == ("first" if first == 0 else "second")

    def test_are_chosen_from_by_a_click_too(self, page: Page, drawing: Draw) -> None:
        made = drawing.round("pairs", 1)
        page.goto(f"{made['links']['page']}?annotator=eve")
        page.locator("button.sentence").first.click()
        expect(page.get_by_text(re.compile(r"^eve · 1 of"))).to_be_visible()


class TestResponses:
    def test_are_graded_by_keys_beside_the_rubric_on_a_phone_too(self, page: Page, stack: Stack) -> None:
        job = stack.submit(
            {
                "personas": ["gym-01"],
                "tasks": [{"task": "expected_action", "questions": 3}],
                "models": ["simulated/sim-faithful"],
                "reasoner": "simulated/sim-reasoner",
                "judges": ["simulated/sim-judge"],
            }
        )
        stack.ended(job)
        page.goto(f"/jobs/{job}")
        expect(
            page.get_by_role("link", name="Compare", exact=True).and_(page.locator(".button"))
        ).to_have_count(0)
        page.get_by_role("link", name="Human labels").click()
        page.get_by_label("What to rate").select_option("responses")
        page.get_by_label("How many people answer each").fill("1")
        page.get_by_role("button", name="Create round").click()
        page.get_by_role("row", name="3 responses").get_by_role("link").click()
        page.get_by_label("Your name or initials").fill("gina")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Expected Action in Given Setting")).to_be_visible()
        expect(page.get_by_role("group", name="Which score").get_by_role("button")).to_have_count(5)
        page.set_viewport_size({"width": 390, "height": 800})
        assert overflow(page) == 0
        assert barriers(page) == []
        assert unreached(page) == []
        for n in (1, 2, 3):
            page.keyboard.press(str(n))
            expect(page.get_by_text(f"{n} of 3 answered")).to_be_visible()
        said = stack.api.get("/v1/annotations", params={"annotator": "gina"}).json()["data"]
        assert [each["score"] for each in said] == [1, 2, 3]
        page.goto(page.url.replace("gina", "hugo"))
        expect(page.get_by_role("heading", name="Nothing left to rate")).to_be_visible()
        assert barriers(page) == []
