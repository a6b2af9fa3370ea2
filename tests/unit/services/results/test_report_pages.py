"""The HTML report of an ended job is made once, until something that it shows changes."""

from dataclasses import replace
from typing import Any, cast

import pytest

from app.domain.jobs.status import JobStatus
from app.services.results import reports
from app.services.results.reports import ReportContent, ReportPages


class Job:
    """The fields of a job that tell whether its page is still right."""

    id = "job_1"
    finished_at = error = None

    def __init__(self, status: JobStatus) -> None:
        self.status = status


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> ReportPages:
    made = 0

    async def made_page(*_: Any) -> bytes:
        nonlocal made
        made += 1
        return b"page %d" % made

    monkeypatch.setattr(reports, "_page", made_page)
    return ReportPages(cast("Any", None), cast("Any", None))


async def page(pages: ReportPages, content: ReportContent, status: JobStatus = JobStatus.COMPLETED) -> bytes:
    return await pages.packed(cast("Any", Job(status)), cast("Any", None), content)


CONTENT = ReportContent("{}")


async def test_is_kept(pages: ReportPages) -> None:
    assert [await page(pages, CONTENT) for _ in range(2)] == [b"page 1", b"page 1"]


@pytest.mark.parametrize(
    "change", [{"results": '{"a": 1}'}, {"calibrated": [{"model": "a"}]}, {"service": "b"}]
)
async def test_is_made_again_after_a_change(pages: ReportPages, change: dict[str, Any]) -> None:
    assert await page(pages, CONTENT) == b"page 1"
    assert await page(pages, replace(CONTENT, **change)) == b"page 2"
    assert await page(pages, CONTENT) == b"page 1"


async def test_of_a_running_job_is_made_each_time(pages: ReportPages) -> None:
    found = [await page(pages, CONTENT, JobStatus.RUNNING) for _ in range(2)]
    assert found == [b"page 1", b"page 2"]


async def test_leaves_room_for_others(pages: ReportPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "KEPT_BYTES", 8)  # a page has 6
    other = replace(CONTENT, service="other")
    assert [await page(pages, each) for each in (CONTENT, other, CONTENT)] == [
        b"page 1",
        b"page 2",
        b"page 3",
    ]
