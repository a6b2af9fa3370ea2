import io
import random
from collections.abc import Iterable

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


def rate_of(steps: Iterable[tuple[float, int]], window: float = 8.0) -> float | None:
    """The rate after each of the steps: seconds that pass, and calls that are done then."""
    clock = Clock()
    meter = RateMeter(window, clock)
    for seconds, done in steps:
        clock.now += seconds
        meter.add(done)
    return meter.per_second


class TestRateMeter:
    def test_has_no_rate_before_it_can_be_trusted(self) -> None:
        assert rate_of([]) is None
        assert rate_of([(0, 0), (1, 500), (1, 900)]) is None

    def test_is_the_slope_over_the_last_seconds(self) -> None:
        slow, fast = [(1.0, done) for done in range(20)], [(1.0, 20 + 200 * n) for n in range(1, 13)]
        assert rate_of(slow + fast) == pytest.approx(200)

    def test_leaves_out_the_time_before_the_first_call_ended(self) -> None:
        assert rate_of([(1, 0), (60, 0), (60, 100), (2, 300), (2, 500)]) == 100

    def test_falls_while_no_call_ends_for_longer_than_usual(self) -> None:
        steps = [(10.0, 8 * n) for n in range(12)]
        assert rate_of(steps) == rate_of([*steps, (19.0, 88)]) == pytest.approx(0.8)
        assert 0 < (rate_of([*steps, (1_000.0, 88)]) or 0) < 0.1

    def test_starts_again_when_failed_parts_are_tried_again(self) -> None:
        assert rate_of([(1, 0), (2, 100), (2, 200), (2, 150)]) is None


def polled(progress: JobProgress, clock: Clock, rows: Iterable[tuple[int, int]]) -> None:
    for generated, judged in rows:
        clock.now += 1.0
        progress.update(job(progress=progress_of(generated=generated, judged=judged)))


class TestRemainingTime:
    @pytest.mark.parametrize("seed", range(20))
    @pytest.mark.parametrize(("gap", "most"), [(1, 3), (8, 8), (30, 16)])
    def test_changes_little_while_calls_end_in_groups_at_a_constant_rate(
        self, seed: int, gap: int, most: int
    ) -> None:
        source = random.Random(seed)
        clock = Clock()
        progress = JobProgress(job(progress={"judging": stage(2_000, 0)}), clock)
        done, before, seen = 0, None, 0
        while done < 1_800:
            for _ in range(source.randint(max(1, gap // 2), gap + gap // 2)):
                clock.now += 1.0
                progress.update(job(progress={"judging": stage(2_000, done)}))
                now = progress.remaining_seconds()
                if now and before:
                    assert 1 / 1.5 < now / before < 1.5
                    seen += 1
                before = now
            done += source.randint(1, most)
        assert seen > 100

    def test_is_unknown_before_enough_calls_of_each_stage_have_ended(self) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        polled(progress, clock, [(n, 0) for n in range(30)])
        assert progress.remaining_seconds() is None
        assert "ETA" not in progress.line()

    def test_is_that_of_the_slowest_stage(self) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        polled(progress, clock, [(n, n * 2) for n in range(51)])
        assert progress.remaining_seconds() == pytest.approx(800 / 2)
        assert "ETA about 6:30" in progress.line()

    def test_is_not_that_of_the_time_before_a_pause(self) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        polled(progress, clock, [(n, n * 2) for n in range(51)])
        progress.update(job("paused", progress=progress_of(generated=50, judged=100)))
        assert progress.remaining_seconds() is None
        clock.now += 3_600.0
        polled(progress, clock, [(n, n * 2) for n in range(50, 63)])
        assert progress.remaining_seconds() == pytest.approx((900 - 124) / 2)


def test_a_narrow_terminal_shows_all_figures() -> None:
    console = Console(width=40, file=io.StringIO())
    progress = JobProgress(job(reuse={"same_job": 1_200, "other_job": 34}))
    console.print(progress)
    shown = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined] # it is a StringIO
    assert progress.figures() in shown


SPARED = {"same_job": 1_200, "other_job": 34}


class TestJobProgress:
    def test_a_line_counts_the_replies_that_cost_nothing(self) -> None:
        assert "1,234 reused replies" in JobProgress(job(reuse=SPARED)).line()
        assert "reused" not in JobProgress(job(reuse=None)).line()

    def test_a_job_in_batches_says_what_it_waits_for(self) -> None:
        words = "3 batches, not submitted yet"
        assert f"running · waiting for {words} ·" in JobProgress(job(batches={"waiting_for": words})).line()
        assert "waiting" not in JobProgress(job(batches={"waiting_for": None})).line()

    @pytest.mark.parametrize(
        ("sent", "words"),
        [(8, "8 calls on the wire, 292 waiting"), (1, "1 call on the wire, 299 waiting"), (None, "")],
    )
    def test_calls_on_the_wire_are_told_from_those_that_wait(self, sent: int | None, words: str) -> None:
        taken = {"judging": stage(900, 100) | {"running": 300}}
        line = JobProgress(job(progress=taken, on_the_wire=sent)).line()
        assert line.startswith(" · ".join(filter(None, ("judging 100/900", "running", words, "cost"))))

    def test_a_line_says_all(self) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        polled(progress, clock, [(4 * n, 36 * n) for n in range(11)])
        line = progress.line()
        assert line.startswith(
            "generation 40/100 · judging 360/~900 · running · 40 calls/s · ETA about 0:20 · cost $0.0123"
        )

    @pytest.mark.parametrize(
        ("usd", "unpriced", "words"), [(0.0, 0, []), (None, 7, ["cost unknown"]), (0.0, 7, ["cost $0.00"])]
    )
    def test_a_job_of_free_models_says_nothing_of_money(
        self, usd: float | None, unpriced: int, words: list[str]
    ) -> None:
        line = JobProgress(job(cost={"usd": usd, "unpriced_calls": unpriced})).line()
        assert [part for part in line.split(" · ") if part.startswith("cost")] == words

    def test_an_ended_job_has_its_time_and_its_mean_rate(self) -> None:
        done = {"generation": stage(100, 100), "judging": stage(900, 897, failed=3)}
        line = JobProgress(job("completed", progress=done)).line()  # 1,000 calls from 12:00:00 to 12:00:10
        assert line == (
            "generation 100/100 · judging 900/900 (3 failed) · completed · 100 calls/s"
            " · cost $0.0123 · elapsed 0:10"
        )

    @pytest.mark.parametrize(
        ("seconds", "speed"),
        [
            (20.0, "2 calls/s"),
            (40.0, "1 call/s"),
            (80.0, "30 calls/min"),
            (2400.0, "1 call/min"),
            (40_000.0, "less than 1 call/min"),
        ],
    )
    def test_a_slow_job_has_a_rate_per_minute_and_never_0(self, seconds: float, speed: str) -> None:
        clock = Clock()
        progress = JobProgress(job(progress=progress_of(generated=0, judged=0)), clock)
        progress.update(job(progress=progress_of(generated=1, judged=0)))
        clock.now += seconds
        progress.update(job(progress=progress_of(generated=41, judged=0)))
        assert [each for each in progress.figures().split(" · ") if "call" in each] == [speed]

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
