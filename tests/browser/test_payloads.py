"""Two hundred hostile texts through the whole service and into a real browser: none does anything, all come back."""

import pytest
from playwright.sync_api import Page, expect

from app.web.visible import visible
from tests.browser.watching import Watcher
from tests.e2e.stack import Json, Stack
from tests.unit.reports.hostile import payloads

pytestmark = pytest.mark.long

PAYLOADS = payloads()
LINES = [text for text in PAYLOADS if text.strip() and len(text) <= 300 and not {"\n", "\r"} & set(text)]
"""Those that can be a name or a label."""
PERSONAS = 5
LONGEST_SHOWN = 1000
ACTIVE = """() => [...document.querySelectorAll("main *")].filter((each) =>
  ["SCRIPT", "IMG", "IFRAME", "OBJECT", "EMBED", "STYLE", "LINK", "META", "BASE"].includes(each.tagName)
  || [...each.attributes].some((a) => a.name.startsWith("on") || /^\\s*(javascript|vbscript|data):/i.test(a.value))
).map((each) => each.outerHTML.slice(0, 200))"""
"""What in a page's own part could run or fetch something."""


def body() -> Json:
    """A job in which every text that somebody may send is one of them."""
    short = [text for text in PAYLOADS if len(text) <= LONGEST_SHOWN]
    described = [" ".join(short[n::PERSONAS]) for n in range(PERSONAS)]
    return {
        "name": LINES[0],
        "metadata": {"label": LINES[1]},
        "personas": [
            {"id": f"p{n}", "description": text, "traits": {"E": "high"}} for n, text in enumerate(described)
        ],
        "tasks": ["social_media_post"],
        "responses": [
            {
                "persona": f"p{n % PERSONAS}",
                "task": "social_media_post",
                "model": LINES[7],
                "text": text,
            }
            for n, text in enumerate(PAYLOADS)
        ],
        "judges": [{"model": "simulated/sim-judge", "label": LINES[8]}],
    }


@pytest.fixture(scope="module")
def job(stack: Stack) -> str:
    job_id = stack.submit(body())
    assert stack.ended(job_id)["status"] == "completed"
    return job_id


def all_pages(page: Page, path: str) -> list[str]:
    """The sentences of a list's cards, joined by card, page by page; none of the pages has anything active in it."""
    script = "all => all.map(c => [...c.querySelectorAll('.s > span')].map(s => s.textContent).join(''))"
    page.goto(path)
    seen: list[str] = []
    while True:
        assert page.evaluate(ACTIVE) == []
        seen += page.locator(".card").evaluate_all(script)
        following = page.get_by_role("link", name="Next")
        if not following.count():
            return seen
        page.goto(following.get_attribute("href") or "")


def test_all_come_back_from_the_service(stack: Stack, job: str) -> None:
    assert sorted(each["text"] for each in stack.responses(job)) == sorted(PAYLOADS)
    found = stack.job(job)
    assert (found["name"], found["metadata"]) == (LINES[0], {"label": LINES[1]})


def test_a_page_of_responses_shows_each_as_text(page: Page, stack: Stack, job: str) -> None:
    kept = ["".join(unit["text"] for unit in each["units"]) for each in stack.responses(job)]
    shown = all_pages(page, f"/jobs/{job}/responses")
    assert len(shown) == len(kept) == len(PAYLOADS)
    for text, seen in zip(kept, shown, strict=True):
        assert seen == visible(text) or len(text) > LONGEST_SHOWN


@pytest.mark.parametrize(
    "path", ["/", "/jobs/{}", "/jobs/{}/labels", "/compare?a={}", "/v1/jobs/{}/report?format=html"]
)
def test_no_other_page_is_moved_by_them(page: Page, job: str, path: str) -> None:
    page.goto(path.format(job))
    assert page.title()
    assert page.evaluate(ACTIVE) == []


def test_people_can_label_them(page: Page, stack: Stack, job: str) -> None:
    wanted = {"job": job, "kind": "sentences", "dimension": "E", "size": 30, "seed": 0}
    made = stack.api.post("/v1/labelling-rounds", json=wanted).json()
    page.goto(f"{made['links']['page']}?annotator=anna")
    for n in range(made["size"]):
        expect(page.get_by_text(f"{n} of {made['size']} answered")).to_be_visible()
        assert page.evaluate(ACTIVE) == []
        page.keyboard.press("4")
    expect(page.get_by_role("heading", name="All done")).to_be_visible()
    said = stack.api.get("/v1/annotations", params={"annotator": "anna", "limit": "100"}).json()["data"]
    assert [each["score"] for each in said] == [4] * made["size"]


def test_a_link_that_carries_one_is_only_a_filter(page: Page, job: str, watcher: Watcher) -> None:
    for text in LINES:
        answer = page.request.get(f"/jobs/{job}/responses", params={"model": text})
        assert answer.status in {200, 404, 422}
        page.set_content(answer.text())
        assert page.evaluate(ACTIVE) == []
    watcher.complaints[:] = [
        found for found in watcher.complaints if "elsewhere" in found or "dialog" in found
    ]
