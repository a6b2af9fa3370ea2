"""The report's results by persona instruction."""

import pytest

from app.domain.metrics.metric import Metric
from app.domain.results.by_instruction import (
    INSTRUCTION_METRICS,
    ByInstruction,
    InstructionTotal,
    OfInstruction,
)
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import FIDELITY, sample, stream

pytestmark = pytest.mark.usefixtures("_drawn_once")


def found_of(*instructions: tuple[int, str | None, float]) -> ByInstruction:
    return ByInstruction(
        job="job_sample",
        simulated=True,
        instructions=[
            OfInstruction(
                instruction=number,
                words=words,
                totals=[
                    InstructionTotal(
                        by=["model"],
                        model=model,
                        cells=30,
                        metrics={name: Metric.of(value, 30) for name in INSTRUCTION_METRICS},
                    )
                    for model in FIDELITY
                ],
            )
            for number, words, value in instructions
        ],
    )


async def page_of(found: ByInstruction | None) -> Page:
    done = sample()
    page = await html_report(done.results, stream(done.responses), by_instruction=found)
    return Page(page)


async def test_each_instruction_stands_with_its_words_and_figures() -> None:
    page = await page_of(found_of((0, "You are a {persona}.", 0.811), (3, None, 0.622)))
    assert "Results by persona instruction" in page.text
    assert "You are a {persona}." in page.text
    assert "not known, as the texts existed before" in page.text
    assert page.text.count("0.81") >= 6  # two models, three tables
    assert page.text.count("n = 30") >= 6
    assert {attrs.get("value") for tag, attrs in page.elements if tag == "li"} >= {"1", "4"}


@pytest.mark.parametrize("found", [None, found_of(), found_of((0, "You are {persona}.", 0.8))])
async def test_one_wording_alone_is_no_section(found: ByInstruction | None) -> None:
    assert "Results by persona instruction" not in (await page_of(found)).text


async def test_words_are_only_words() -> None:
    page = await page_of(found_of((0, "".join(HOSTILE[:-1]), 0.8), (1, "You are {persona}.", 0.7)))
    plain = await page_of(found_of((0, "x", 0.8), (1, "You are {persona}.", 0.7)))
    assert len(page.elements) == len(plain.elements)
