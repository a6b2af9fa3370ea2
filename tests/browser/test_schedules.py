"""The console's pages of schedules, in a real browser: made, read with their figure, paused and deleted."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from playwright.sync_api import Page, expect

from embedded.valkey import EmbeddedValkey
from tests.browser.test_console import SMALL
from tests.browser.watching import Watcher, barriers, looks_right
from tests.conftest import scratch_directory
from tests.databases import Databases, libpq_url
from tests.e2e.stack import Stack, running_stack


@pytest.fixture(scope="module")
def url(databases: Databases, template_database: str) -> Iterator[str]:
    with databases.new("schedules", template=template_database) as made:
        yield made


@pytest.fixture(scope="module")
def stack(chromium: str, url: str, valkey: EmbeddedValkey) -> Iterator[Stack]:
    with (
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url()) as running,
    ):
        yield running


def runs_of(url: str, schedule: str) -> None:
    """Two months of runs: the judge moves on the 36th, the model on the 50th, and one was missed."""
    start = datetime.now(UTC) - timedelta(days=60)
    with psycopg.connect(libpq_url(url)) as connection:
        for day in range(60):
            due = start + timedelta(days=day)
            anchor = 0.71 + 0.002 * math.sin(5 * day) + (0.05 if day >= 36 else 0)
            value = anchor + 0.1 + 0.01 * math.sin(7 * day) - (0.06 if day >= 50 else 0)
            alarm = "[]"
            if day in {38, 53}:
                cause, at, shift = ("judge", 36, 0.05) if day == 38 else ("model", 50, -0.06)
                alarm = (
                    f'[{{"cause": "{cause}", "since": "{(start + timedelta(days=at)).isoformat()}", "before": 0.7,'
                    f' "after": 0.7, "shift": {shift}, "ci95": [{shift - 0.01}, {shift + 0.01}]}}]'
                )
            state = "missed" if day == 20 else "measured"
            held = (value, anchor) if state == "measured" else (None, None)
            limits = (0.78, 0.84, 0.70, 0.72) if state == "measured" and day >= 12 else (None,) * 4
            connection.execute(
                "INSERT INTO schedule_runs (id, tenant, schedule_id, due, state, reason, missed, job_id, value, anchor, low,"
                " high, anchor_low, anchor_high, alarms, ended_at) VALUES"
                " (%s, 'default', %s, %s, %s, %s, 0, 'job_01', %s, %s, %s, %s, %s, %s, %s, now())",
                (
                    f"srun_{day}",
                    schedule,
                    due,
                    state,
                    None if held[0] else "not running",
                    *held,
                    *limits,
                    alarm,
                ),
            )
        connection.execute(
            'UPDATE schedules SET anchors = \'{"job": "job_01", "sample": {"responses": 200, "seed": 0}}\''
        )


class TestSchedules:
    def test_one_is_made_read_paused_and_deleted(
        self, page: Page, watcher: Watcher, stack: Stack, url: str
    ) -> None:
        job = stack.api.post("/v1/jobs", json=SMALL).json()["id"]
        page.goto("/")
        page.get_by_role("link", name="Schedules").click()
        looks_right(page)
        page.get_by_label("Job to run again").fill(job)
        page.get_by_label("When").fill("0 0 30 2 *")
        page.get_by_label("Name").fill("nightly")
        page.get_by_role("button", name="Create schedule").click()
        expect(page.get_by_role("alert")).to_contain_text("no such day")
        watcher.expect("422")
        assert barriers(page) == []
        page.get_by_label("When").fill("30 2 1 1 *")
        page.get_by_role("button", name="Create schedule").click()
        expect(page.get_by_role("heading", name="nightly")).to_be_visible()
        expect(page.get_by_text("No runs yet.")).to_be_visible()
        looks_right(page)
        runs_of(url, page.url.rpartition("/")[2])
        page.reload()
        expect(page.get_by_text("drift: model −0.060")).to_be_visible()
        expect(page.get_by_text("drift: judge +0.050")).to_be_visible()
        shown = page.get_by_role("img", name="The watched value")
        expect(shown).to_be_visible()
        shown.evaluate("image => image.decode()")  # fails if it is no picture
        looks_right(page)
        assert barriers(page) == []
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.get_by_role("link", name="Schedules", exact=True).first.click()
        expect(page.get_by_text("paused")).to_be_visible()
        page.get_by_role("link", name="nightly").click()
        page.get_by_text("Delete …").click()
        page.get_by_role("button", name="Delete this schedule").click()
        expect(page.get_by_text("No schedules yet.")).to_be_visible()
