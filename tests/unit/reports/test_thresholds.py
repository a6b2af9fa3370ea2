"""The report's section on the job's own thresholds and the baselines that they name."""

import pytest

from app.domain.results.gate import Gate, GateCheck, Held, HeldAgainst
from tests.unit.reports.page import Page, html_report
from tests.unit.reports.sample import sample, stream

pytestmark = pytest.mark.usefixtures("_drawn_once")

HOSTILE = "<script>alert(1)</script>"
CHECK = GateCheck(
    threshold="acc_atom>=baseline:release-3",
    of={"model": "shy", "than": HOSTILE},
    verdict="inconclusive",
    reason=f"the judges differ; 0.100: all of the interval [0.050, 0.150] meets it; {HOSTILE}",
    value=0.1,
    ci95=(0.05, 0.15),
    coverage=1.0,
)


async def page(held: Held | None) -> Page:
    made = sample()
    return Page(await html_report(made.results, stream(made.responses), held=held))


def gate(*checks: GateCheck) -> Gate:
    return Gate(job="job_1", verdict="inconclusive", minimum_coverage=0.95, checks=list(checks))


async def test_each_check_and_each_baseline_with_its_judges_and_date_are_told() -> None:
    against = HeldAgainst("release-3", HOSTILE, "job_2", ["acme/judge-1"], "2026-11-01", by_others=True)
    found = await page(Held(gate(CHECK), None, [against]))
    _, _, section = found.text.partition("This job’s thresholds: inconclusive.")
    assert f"Your baseline release-3 is {HOSTILE} of job_2, judged by acme/judge-1" in section
    assert "that job ended on 2026-11-01. It was judged by other judges than this job." in section
    assert "acc_atom>=baseline:release-3" in section
    assert "the judges differ; 0.100" in section
    assert ("a", {"href": "/jobs/job_2"}) in found.elements


async def test_one_by_the_same_judges_is_not_said_to_be_by_others() -> None:
    against = HeldAgainst("r", "m", "job_2", ["j"], "2026-11-01", by_others=False)
    assert "other judges than this job" not in (await page(Held(gate(CHECK), None, [against]))).text


async def test_thresholds_that_cannot_be_checked_say_why_and_without_any_there_is_no_section() -> None:
    told = await page(Held(None, "baseline release-3 not found"))
    assert "This job’s thresholds could not be checked: baseline release-3 not found" in told.text
    assert "This job’s thresholds" not in (await page(None)).text
