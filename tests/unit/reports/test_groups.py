"""The report's groups of models and personas."""

import pytest

from app.domain.results.model_groups import Attributes
from app.services.results.baselines import BaselineFilter, baselines
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import response_of, results_of, sample, stream

pytestmark = pytest.mark.usefixtures("_drawn_once")


async def page_of(attributes: Attributes, *, published: bool = True) -> Page:
    done = sample()
    among = baselines(BaselineFilter()) if published else None
    page = await html_report(done.results, stream(done.responses), published=among, attributes=attributes)
    return Page(page)


async def test_a_jobs_groups_stand_beside_the_papers() -> None:
    page = await page_of({"simulated/steady": {"size": "8B"}, "simulated/drifting": {"size": "8B"}})
    assert "Groups of models and personas" in page.text
    assert "size: 8B2 models" in page.text
    assert "tuning: base3 models" in page.text
    assert "tuning: base" not in (await page_of({}, published=False)).text


async def test_attributes_are_only_words() -> None:
    plain = await page_of({"simulated/steady": {"size": "8B"}}, published=False)
    hostile = "".join(HOSTILE[:-1])
    page = await page_of({"simulated/steady": {hostile: hostile}}, published=False)
    assert len(page.elements) == len(plain.elements)


async def test_without_anything_to_group_there_is_no_section() -> None:
    one = response_of("I sang.", ("I sang.", 5))
    page = await html_report(results_of([one]), stream([one]))
    assert "Groups of models" not in page
