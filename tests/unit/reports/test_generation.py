"""The HTML report of a job that makes up personas: how many, what was dropped, and how alike they are."""

from typing import Any

import pytest

from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page import Page, html_report, shape
from tests.unit.reports.sample import results_of, stream

MADE: dict[str, Any] = {
    "id": "pset_0123456789abcdef0123456789abcdef",
    "wanted": 40,
    "found": 40,
    "asks": 4,
    "dropped": {"duplicate": 12, "alike": 27},
    "error": None,
    "diversity": {
        "pairs": 780,
        "highest_attributes": 0.43,
        "mean_attributes": 0.04,
        "highest_wording": 0.38,
        "mean_wording": 0.11,
    },
}


async def page_of(*, simulated: bool = True, **changes: Any) -> Page:
    results = results_of([]) | {"simulated": simulated, "persona_set": MADE | changes}
    return Page(await html_report(results, stream([])))


class TestWhatItSays:
    async def test_how_many_were_wanted_found_and_dropped_and_where_they_are(self) -> None:
        page = await page_of()
        assert "All 40 requested personas were generated." in page.text
        assert ("a", {"href": f"/v1/persona-sets/{MADE['id']}"}) in page.elements
        cells = [text for tag, text in page.texts if tag in {"small", "th", "td"} and text.strip()]
        assert {"duplicate", "alike", "40", "4", "12", "27"} <= set(cells)
        assert not {"unusable", "surplus"} & set(cells)

    async def test_how_alike_they_are_over_how_many_pairs(self) -> None:
        page = await page_of()
        assert "over 780 pairs" in page.text
        assert {"0.43", "0.04", "0.38", "0.11"} <= {text for tag, text in page.texts if tag == "td"}

    async def test_what_is_missing_is_told_and_no_number(self) -> None:
        page = await page_of(
            id=None, found=1, dropped={}, diversity=None, error="five asks brought no new one"
        )
        assert "1 of 40 requested personas were generated. five asks brought no new one" in page.text
        assert "No persona set has been stored yet." in page.text
        assert "Nothing was dropped." in page.text
        assert "Not measured: needs a set of at least two personas." in page.text

    @pytest.mark.parametrize("simulated", [True, False])
    async def test_whether_it_is_simulated(self, simulated: bool) -> None:
        assert ("Simulated." in (await page_of(simulated=simulated)).text) == simulated

    async def test_nothing_of_sentences_and_responses_that_such_a_job_has_not(self) -> None:
        page = await page_of()
        for words in ("No sentence has been scored", "ACC", "Responses, worst first", "Excluded data"):
            assert words not in page.text
        targets = {attrs.get("id") for _, attrs in page.elements}
        linked = [attrs["href"] or "" for tag, attrs in page.elements if tag == "a"]
        assert all(href[1:] in targets for href in linked if href.startswith("#"))
        assert {"#contents", "#generation-title", "#cost-title"} <= set(linked)
        assert not [tag for tag, _ in page.elements if tag == "script"]  # it has nothing to filter


class TestHostileTexts:
    async def test_an_error_from_outside_stays_text(self) -> None:
        plain = shape(await page_of(error="harmless"))
        for text in HOSTILE:
            page = await page_of(error=text)
            assert shape(page) == plain
