import io

import pytest
from rich.console import Console

from persona_assay.terminal.failures import status_words
from persona_assay.terminal.progress import JobProgress, RateMeter, follow
from tests.unit.cli.documents import job, stage


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def progress_of(*, generated: int, judged: int) -> dict[str, object]:
    return {"generation": stage(100, generated), "judging": stage(900, judged, estimated=generated < 100)}


class TestRateMeter:
    def test_has_no_rate_before_it_can_be_trusted(self) -> None:
        clock = Clock()
        meter = RateMeter(clock)
        assert meter.per_second is None
        meter.add(0)
        clock.now += 1.0
        meter.add(500)
        assert meter.per_second is None

    def test_is_the_slope_over_the_last_seconds(self) -> None:
        clock = Clock()
        meter = RateMeter(clock)
        for done in (0, 10, 20, 30, 230, 430, 630, 830, 1030, 1230, 1430, 1630):  # 10, then 200 a second
            meter.add(done)
            clock.now += 1.0
        assert meter.per_second == (1630 - 30) / 8

    def test_leaves_out_the_time_before_the_first_call_ended(self) -> None:
        clock = Clock()
        meter = RateMeter(clock)
        for done in (0, 0, 0, 100, 200):
            meter.add(done)
            clock.now += 1.0
        assert meter.per_second == 200 / 2

    def test_falls_to_nothing_while_a_job_is_paused(self) -> None:
        clock = Clock()
        meter = RateMeter(clock)
        for done in (0, 100, *[100] * 10):
            meter.add(done)
            clock.now += 1.0
        assert meter.per_second == 0.0


SPARED = {"same_job": 1_200, "other_job": 34}


class TestJobProgress:
    def test_a_line_counts_the_replies_that_cost_nothing(self) -> None:
        assert "1,234 reused replies" in JobProgress(job(reuse=SPARED)).line()
        assert "reused" not in JobProgress(job(reuse=None)).line()

    def test_a_job_in_batches_says_what_it_waits_for(self) -> None:
        words = "3 batches, not submitted yet"
        assert f"running · waiting for {words} ·" in JobProgress(job(batches={"waiting_for": words})).line()
        assert "waiting" not in JobProgress(job(batches={"waiting_for": None})).line()

    def test_a_line_says_all(self) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        clock.now += 4.0
        progress.update(job(progress=progress_of(generated=40, judged=360)))
        # 400 calls in 4 s: 100 a second; 600 remain: 6 s.
        line = progress.line()
        assert line.startswith(
            "generation 40/100 · judging 360/~900 · running · 100 calls/s · ETA 0:06 · cost $0.0123"
        )

    def test_the_time_left_runs_down_between_two_states(self) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        clock.now += 4.0
        progress.update(job(progress=progress_of(generated=40, judged=360)))
        clock.now += 2.0
        assert "ETA 0:04" in progress.line()

    def test_an_ended_job_has_its_time_and_its_mean_rate(self) -> None:
        done = {"generation": stage(100, 100), "judging": stage(900, 897, failed=3)}
        line = JobProgress(job("completed", progress=done)).line()  # 1,000 calls from 12:00:00 to 12:00:10
        assert line == (
            "generation 100/100 · judging 900/900 (3 failed) · completed · 100 calls/s"
            " · cost $0.0123 · elapsed 0:10"
        )

    @pytest.mark.parametrize(
        ("seconds", "speed"),
        [(20.0, ["2 calls/s"]), (80.0, ["30 calls/min"]), (2400.0, ["1 call/min"]), (40_000.0, [])],
    )
    def test_a_slow_job_has_a_rate_per_minute_and_never_0(self, seconds: float, speed: list[str]) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        clock.now += seconds
        progress.update(job(progress=progress_of(generated=40, judged=0)))
        assert [each for each in progress.figures().split(" · ") if "call" in each] == speed

    def test_a_cancelled_job_has_no_time_left(self) -> None:
        assert "ETA" not in JobProgress(job("cancelled")).line()

    def test_calls_without_a_price_are_not_passed_off_as_free(self) -> None:
        line = JobProgress(job(cost={"usd": 0.0, "unpriced_calls": 1200})).line()
        assert "+ 1,200 calls of unknown price" in line

    def test_a_paused_job_says_why(self) -> None:
        assert status_words(job("paused", status_reason="budget_exhausted")) == "paused (budget exhausted)"

    def test_a_job_that_completed_with_failures_says_so(self) -> None:
        assert status_words(job("completed", completeness="partial")) == "completed, partial"


class TestFollow:
    def test_without_a_terminal_it_is_one_plain_line_for_each_change(self) -> None:
        text = io.StringIO()
        states = [job("queued"), job("running"), job("running"), job("completed")]
        last = follow(states, Console(file=text, width=60))
        assert last["status"] == "completed"
        lines = text.getvalue().splitlines()
        assert [line.split(" · ")[2] for line in lines] == ["queued", "running", "completed"]
        assert "\x1b" not in text.getvalue()

    def test_on_a_terminal_the_last_state_stays_as_bars(self) -> None:
        text = io.StringIO()
        console = Console(file=text, force_terminal=True, width=80, _environ={"TERM": "xterm-256color"})
        done = {"generation": stage(100, 100), "judging": stage(900, 900)}
        follow([job("running"), job("completed", progress=done)], console)
        *_, generation, judging, figures = text.getvalue().splitlines()[:3]
        assert "━" in generation
        assert "900/900" in judging
        assert figures == "completed · 100 calls/s · cost $0.0123 · elapsed 0:10"

    def test_the_stages_of_personagym_have_bars_with_whole_names(self) -> None:
        text = io.StringIO()
        console = Console(file=text, force_terminal=True, width=80, _environ={"TERM": "xterm-256color"})
        names = ("environments", "questions", "exemplars", "generation", "judging")
        done = {name: stage(10, 10) for name in names} | {"questions": stage(0, 0)}
        follow([job("completed", progress=done)], console)
        lines = text.getvalue().removeprefix("\x1b[?25l").splitlines()  # the cursor is hidden first
        assert [line.split()[0] for line in lines if "━" in line] == [
            "environments",
            "exemplars",
            "generation",
            "judging",
        ]
