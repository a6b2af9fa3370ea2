"""Reading responses in a browser: by keys, side by side, and down to what judges were asked."""

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.watching import barriers, overflow, unreached
from tests.e2e.stack import Json, Stack

TEXTS: Json = {
    "name": "To be read",
    "personas": ["E-high", "N-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful", "simulated/sim-drifting"],
    "judges": ["simulated/sim-judge", "simulated/sim-judge-noisy"],
    "instructions": [1, 2],
    "iterations": 3,
}
"""Twenty-four responses: two pages."""
NARROW: ViewportSize = {"width": 380, "height": 800}
FOCUSED = "document.activeElement.closest('.card')?.id ?? ''"


@pytest.fixture(scope="module")
def job(stack: Stack) -> str:
    made = stack.submit(TEXTS)
    assert stack.ended(made)["status"] == "completed"
    return made


@pytest.fixture
def responses(stack: Stack, job: str) -> list[str]:
    return [each["id"] for each in stack.responses(job)]


def test_keys_go_from_response_to_response_and_from_page_to_page(
    page: Page, job: str, responses: list[str]
) -> None:
    page.goto(f"/jobs/{job}/responses")
    expect(page.get_by_text("next response")).to_be_visible()

    def pressed(key: str) -> str:
        page.keyboard.press(key)
        return str(page.evaluate(FOCUSED))

    assert [pressed(key) for key in "jjjk"] == [responses[n] for n in (0, 1, 2, 1)]
    page.keyboard.press("n")
    page.wait_for_url("**after=**")
    expect(page.locator(".card")).to_have_count(len(responses) - 20)
    assert pressed("k") == responses[-1]
    page.keyboard.press("p")
    expect(page.locator(".card")).to_have_count(20)
    search = page.get_by_label("Text")
    search.press_sequentially("jnp")
    expect(search).to_have_value("jnp")
    assert "after=" not in page.url


def test_a_score_leads_to_what_judges_were_asked(page: Page, stack: Stack, job: str) -> None:
    page.goto(f"/jobs/{job}/responses")
    score = page.locator(".card .s b a").first
    score.focus()
    said = page.locator(".card .s").first.evaluate("s => getComputedStyle(s, '::after').content")
    assert "sim-judge" in said
    score.press("Enter")
    page.wait_for_url("**/judging?unit=0")
    response = page.url.split("/")[-2]
    found = stack.api.get(f"/v1/jobs/{job}/responses/{response}/judge-calls", params={"unit": 0}).json()
    shown = page.locator(".asked pre").all_text_contents()
    assert shown == [text for call in found["data"] for text in (call["prompt"], call["raw"])]


def test_two_models_texts_stand_beside_each_other(page: Page, job: str, responses: list[str]) -> None:
    page.goto(f"/jobs/{job}/responses")
    page.get_by_role("link", name="Side by side with the other models").first.click()
    sides = page.get_by_role("article")
    expect(sides).to_have_count(2)
    assert sides.first.get_attribute("id") == responses[0]
    boxes = [sides.nth(n).bounding_box() for n in (0, 1)]
    assert all(boxes)
    tops = {box["y"] for box in boxes if box}
    assert len(tops) == 1
    page.keyboard.press("n")
    page.wait_for_url(f"**/{responses[1]}/side-by-side")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_them_in_any_window(
    page: Page, job: str, responses: list[str], scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for rest in ("?q=i&sort=score", f"/{responses[0]}/judging?unit=0", f"/{responses[0]}/side-by-side"):
        page.goto(f"/jobs/{job}/responses{rest}")
        assert barriers(page) == [], rest
        assert unreached(page) == [], rest
        page.set_viewport_size(NARROW)
        assert overflow(page) == 0, rest
        page.set_viewport_size({"width": 1280, "height": 900})
