"""The HTML report in a real browser: what it shows is what the API says, and no text from outside does anything to it."""

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from app.domain.judging.judged_response import JudgedResponse
from app.services.results.baselines import BaselineFilter, baselines
from app.web.templates import SHARED, source
from tests.browser.conftest import PATIENCE_MILLISECONDS
from tests.browser.watching import Watcher, barriers, overflow, runs_strange_script
from tests.e2e.stack import Json, Stack
from tests.unit.reports.hostile import HOSTILE, payloads
from tests.unit.reports.page import html_report
from tests.unit.reports.sample import response_of, results_of, sample, stream

JOB: Json = {
    "name": "Two models before a browser",
    "personas": ["E-high", "E-neutral", "N-low"],
    "tasks": ["essay", "social_media_post"],
    "models": ["simulated/sim-faithful", "simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": [1, 2],
    "iterations": 1,
}
NAMES = ("mean", "acc_atom", "ic_atom", "rc_atom")
COLOUR = "element => getComputedStyle(element).backgroundColor"
UNFOLD = "() => { for (const part of document.querySelectorAll('details:not(.card)')) part.open = true; }"
CARDS = """() => [...document.querySelectorAll("details.card")].map((card) => {
  card.open = true;
  return {...card.dataset, where: card.querySelector(".where").innerText,
    sentences: [...card.querySelectorAll(".s")].map((sentence) => {
      const words = sentence.querySelector(":scope > span");
      return {marks: [...sentence.classList], text: words.innerText, verdicts: sentence.dataset.verdicts ?? "",
        colour: getComputedStyle(words).backgroundColor};
    })};
})"""
"""All cards with their sentences as they are shown, opened: asked one by one they take a minute."""
PRINTED_WIDTH = 700
"""Of an A4 page between its margins, in pixels."""


@pytest.fixture(scope="module")
def job(stack: Stack) -> str:
    submitted = stack.submit(JOB)
    assert stack.ended(submitted)["status"] == "completed"
    return submitted


@pytest.fixture
def served(page: Page, job: str) -> Page:
    """The job's report, as the service gives it."""
    page.goto(f"/v1/jobs/{job}/report?format=html")
    return page


@pytest.fixture
def offline(browser: Browser) -> Iterator[Page]:
    """A page without any network. The test fails at its end if the page logged an error or asked anybody for anything."""
    watcher = Watcher("file://")
    context = browser.new_context(
        viewport={"width": 1280, "height": 900}, offline=True, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    opened = context.new_page()
    watcher.watch(context, opened)
    yield opened
    context.close()
    assert watcher.complaints == []


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of two models and nine personas."""
    found = sample()
    return written(tmp_path_factory.mktemp("report"), found.results, found.responses)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same with half the runs. Axe looks at every part of a page, and there are as many kinds of them."""
    found = sample(iterations=1)
    return written(tmp_path_factory.mktemp("half"), found.results, found.responses)


@pytest.fixture
def report(offline: Page, file: str) -> Page:
    """That report, opened."""
    offline.goto(file)
    return offline


def written(directory: Path, results: Json, responses: list[JudgedResponse]) -> str:
    """The address of a report as a file. Rendered on a thread of its own: this one's event loop is Playwright's."""
    published = baselines(BaselineFilter())
    with ThreadPoolExecutor(1) as thread:
        page = thread.submit(asyncio.run, html_report(results, stream(responses), (), published)).result()
    file = directory / "report.html"
    file.write_text(page, encoding="utf-8")
    return file.as_uri()


def tokens() -> dict[str, str]:
    """The light colours by name, in a browser's form."""
    light = source(SHARED, "tokens.css").partition("@media")[0]
    found = dict(re.findall(r"--([\w-]+):\s*#(\w{6});", light))
    return {
        name: f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (0, 2, 4))})"
        for name, colour in found.items()
    }


def step_of(name: str, value: float) -> int:
    """Which tenth of its range a metric lies in."""
    lowest = -1.0 if name == "rc_atom" else 0.0
    return min(9, int((value - lowest) / (1 - lowest) * 10))


class TestServed:
    def test_the_heat_maps_have_the_apis_figures_and_their_colours(
        self, served: Page, stack: Stack, job: str
    ) -> None:
        colours = tokens()
        for cell in stack.results(job)["cells"]:
            title = served.locator("h3", has=served.get_by_text(cell["model"], exact=True)).and_(
                served.locator("[id^=heat-]")
            )
            table = served.locator(f"[aria-labelledby={title.get_attribute('id')}] table")
            row = table.get_by_role("row").filter(has=served.get_by_role("rowheader", name=cell["persona"]))
            task = ("essay", "social_media_post").index(cell["task"])
            for place, name in enumerate(NAMES):
                shown = row.get_by_role("cell").nth(task * len(NAMES) + place)
                value = cell["metrics"][name]["value"]
                expect(shown).to_have_text(f"{value:.2f}".replace("-", "−"))
                if name != "mean":
                    assert shown.evaluate(COLOUR) == colours[f"h{step_of(name, value)}"]

    def test_every_sentence_has_the_mark_and_colour_of_its_score(
        self, served: Page, stack: Stack, job: str
    ) -> None:
        colours = tokens() | {"none": "rgba(0, 0, 0, 0)"}
        targets = {"high": (4, 5), "neutral": (3, 3), "low": (1, 2)}
        said = {
            (response["model"], response["persona"], response["task"], response["run"]): response
            for response in stack.responses(job)
        }
        served.evaluate(UNFOLD)
        cards = served.evaluate(CARDS)
        assert len(cards) == len(said)
        for card in cards:
            run = int(re.search(r"run (\d+)", card["where"])[1])  # type: ignore[index]
            response = said[card["model"], card["persona"], card["task"], run]
            low, high = targets[next(iter(response["levels"].values()))]
            for shown, unit in zip(card["sentences"], response["units"], strict=True):
                (verdict,) = unit["verdicts"]
                score = verdict["score"]
                side = (
                    "none"
                    if score is None
                    else "in"
                    if low <= score <= high
                    else "below"
                    if score < low
                    else "above"
                )
                assert side in shown["marks"]
                assert shown["text"] == unit["text"]
                assert shown["colour"] == colours[side]
                if verdict["raw"]:
                    assert f"“{verdict['raw']}”" in shown["verdicts"]

    def test_a_script_of_somebody_else_does_not_run(self, served: Page, watcher: Watcher) -> None:
        assert not runs_strange_script(served)
        watcher.expect("Content Security Policy")


class TestReading:
    def test_the_judges_words_appear_at_the_sentence_in_hand(self, report: Page) -> None:
        report.get_by_text("Show 288 responses").click()
        card = report.locator(".card", has=report.locator(".s[data-verdicts]")).first
        card.locator("summary").first.click()
        sentence = card.locator(".s[data-verdicts]").first
        sentence.focus()
        shown = sentence.evaluate("element => getComputedStyle(element, '::after').content")
        assert "simulated/judge-a" in shown

    def test_filters_leave_what_was_asked_for(self, report: Page) -> None:
        both = "[data-model='simulated/drifting'][data-persona=E-neutral]"
        report.get_by_text("Show 288 responses").click()
        wanted = report.locator(f".card{both}").count()
        assert wanted > 0
        report.get_by_role("combobox", name="Model").select_option("simulated/drifting")
        report.get_by_role("combobox", name="Persona").select_option("E-neutral")
        expect(report.locator(".card:visible")).to_have_count(wanted)
        expect(report.get_by_text(f"{wanted} shown")).to_be_visible()

    def test_the_figures_words_are_text_that_can_be_found(self, report: Page) -> None:
        figure = report.get_by_role("img", name=re.compile("The models’ atomic metrics"))
        expect(figure).to_be_visible()
        assert {"simulated/steady", "simulated/drifting"} <= set(texts(figure))


def texts(figure: Locator) -> list[str]:
    return [str(text.text_content()) for text in figure.locator("text").all()]


class TestForEverybody:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_axe_finds_nothing(self, offline: Page, half: str, scheme: str) -> None:
        offline.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        offline.goto(half)
        offline.evaluate(UNFOLD)
        for card in offline.locator(".card").all()[:6]:
            card.locator("summary").first.click()
        assert barriers(offline) == []

    def test_a_figure_takes_the_readers_colours(self, report: Page) -> None:
        dots = report.get_by_role("img", name=re.compile("The models’ atomic metrics")).locator(
            "use.f-accent"
        )
        colour = "element => getComputedStyle(element).fill"
        light = dots.first.evaluate(colour)
        assert light == tokens()["accent"]
        report.emulate_media(color_scheme="dark")
        assert dots.first.evaluate(colour) != light
        report.emulate_media(color_scheme="dark", media="print")
        assert dots.first.evaluate(colour) == light

    def test_a_link_to_a_response_unfolds_it(self, report: Page) -> None:
        name = report.locator(".card").last.get_attribute("id")
        report.evaluate("name => { location.hash = name; }", name)
        card = report.locator(".card[open]")
        expect(card).to_have_attribute("id", name or "")
        expect(card.locator(".item")).to_be_in_viewport()

    def test_it_prints_its_definitions_and_no_folded_responses(self, report: Page) -> None:
        definition = report.get_by_text("One model playing one persona in one task")
        expect(definition).to_be_hidden()
        report.emulate_media(media="print")
        assert definition.evaluate("element => element.getBoundingClientRect().height") > 0
        expect(report.locator(".card").first).to_be_hidden()

    def test_it_prints_without_what_only_a_screen_can_do(self, report: Page) -> None:
        report.emulate_media(media="print")
        report.set_viewport_size({"width": PRINTED_WIDTH, "height": 900})
        expect(report.locator("#filters")).to_be_hidden()
        expect(report.locator(".card:not([open])").first).to_be_hidden()
        assert overflow(report) == 0

    def test_a_telephone_needs_no_scrolling_sideways(self, report: Page) -> None:
        report.set_viewport_size({"width": 360, "height": 740})
        assert overflow(report) == 0


class TestHostileTexts:
    @pytest.mark.timeout(600)  # the figures of two hundred models and tasks take long
    @pytest.mark.parametrize(
        "texts", [HOSTILE, pytest.param(payloads(), marks=pytest.mark.long)], ids=["few", "all"]
    )
    def test_they_stay_text_and_leave_the_page_its_width(
        self, offline: Page, tmp_path: Path, texts: tuple[str, ...]
    ) -> None:
        long = ("x" * 100_000, "\u202e" + "y" * 5_000)
        responses = [
            response_of(
                text,
                (text, 1),
                id=f"r-{number}",
                raw=text,
                item_text=text,
                persona=text[:100],
                model=text[:300],
                task=text[:100],
            )
            for number, text in enumerate((*texts, *long))
        ]
        offline.goto(written(tmp_path, results_of(responses) | {"name": "".join(HOSTILE[:-1])}, responses))
        assert offline.locator("script").count() == offline.locator("style").count() == 1
        assert offline.locator("img, iframe, object").count() == 0
        assert offline.locator("[onerror], [onmouseover]").count() == 0
        expect(offline.get_by_role("heading", name="Responses, worst first")).to_be_visible()
        expect(
            offline.locator("#filters option", has_text="<script>alert(1)</script>").first
        ).to_be_attached()
        for width in (1280, 360):
            offline.set_viewport_size({"width": width, "height": 900})
            assert overflow(offline) == 0

    def test_a_report_of_a_thousand_responses_is_one_small_file(self, offline: Page, tmp_path: Path) -> None:
        large = sample(5, 3)
        address = written(tmp_path, large.results, large.responses)
        assert (tmp_path / "report.html").stat().st_size < 2_000_000
        offline.goto(address)
        expect(offline.get_by_role("heading", name="Comparison with published results")).to_be_visible()
        ids = offline.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
        assert len(ids) == len(set(ids))


class TestReaders:
    def test_in_other_time_zones_see_their_own_times(self, browser: Browser, file: str) -> None:
        context = browser.new_context(timezone_id="Asia/Tokyo")
        page = context.new_page()
        page.goto(file)
        # Started at 04:19:03 in UTC, nine hours before Tokyo's.
        expect(page.get_by_text("Started 2026-11-21 13:19:03")).to_contain_text("(Asia/Tokyo)")
        expect(page.locator("time").first).to_have_attribute("title", "2026-11-21 04:19:03 UTC")
        context.close()

    def test_of_right_to_left_texts_see_them_at_the_right(self, offline: Page, tmp_path: Path) -> None:
        hebrew = "\u05e9\u05dc\u05d5\u05dd."
        response = response_of(f"{hebrew}\n\nHello.", (hebrew, 5), ("Hello.", 5), item_text=hebrew)
        offline.goto(written(tmp_path, results_of([response]), [response]))
        offline.evaluate(UNFOLD)
        offline.locator(".card > summary").click()
        ends = offline.evaluate(
            """() => [...document.querySelectorAll(".card .text, .card .item")].map((paragraph) => {
              const range = document.createRange();
              range.selectNodeContents(paragraph);
              const [text, whole] = [range.getClientRects()[0], paragraph.getBoundingClientRect()];
              return text.left - whole.left > whole.right - text.right;
            })"""
        )
        assert ends == [True, True, False]
