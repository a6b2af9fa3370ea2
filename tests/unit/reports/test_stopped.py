"""What a report says of a job that was stopped."""

from collections.abc import Mapping

from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import sample, stream


async def page(error: Mapping[str, str] | None) -> Page:
    made = sample()
    document = await html_report(made.results, stream(made.responses), error=error)
    return Page(document)


async def test_is_cause_and_remedy_with_their_words_as_text() -> None:
    error = {"code": "invalid_api_key", "cause": "<b>lab</b> rejected the key", "remedy": "Set it."}
    shown = await page(error | {"detail": "HTTP 401"})
    assert "Stopped. <b>lab</b> rejected the key. Set it." in shown.text


async def test_is_the_providers_words_without_a_cause() -> None:
    assert "Stopped. HTTP 401." in (await page({"code": "invalid_api_key", "detail": "HTTP 401"})).text


async def test_is_nothing_where_none_was() -> None:
    assert "Stopped." not in (await page(None)).text
