"""A job's progress: a live display on a terminal, a line every few seconds elsewhere."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from persona_assay.terminal.consoles import printable
from persona_assay.terminal.failures import failed_asks_words, failure_view, retrying_words, status_words
from persona_assay.terminal.quantities import SECONDS_PER_MINUTE, counted, dollars, duration, is_free

Json = Mapping[str, Any]

REFRESHES_PER_SECOND = 8
LINE_SECONDS = 5.0
SPEED_SECONDS = 8.0
ESTIMATE_SECONDS = 120.0
TRUSTWORTHY_SECONDS = 2.0
"""A rate over less than this is too noisy to show."""
RELIABLE_ADVANCES = 10
"""Moments at which calls ended that an estimate of the remaining time needs."""
ETA_STEPS = ((120, 10), (600, 30), (3600, 60), (float("inf"), 300))
"""Rounding of the remaining time: up to the first figure in multiples of the second, in seconds."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a job; see the HTTP contract's ``progress``."""

    name: str
    total: int
    succeeded: int
    failed: int
    estimated: bool

    @property
    def done(self) -> int:
        """Finished parts, succeeded or failed."""
        return self.succeeded + self.failed

    @property
    def of_total(self) -> str:
        """Such as ``120/~4,000``."""
        return f"{self.done:,}/{'~' if self.estimated else ''}{self.total:,}"


def stages_of(job: Json) -> list[Stage]:
    """A job's stages that have work, in their order."""
    return [
        Stage(name, stage["total"], stage["succeeded"], stage["failed"], stage.get("estimated", False))
        for name, stage in job["progress"].items()
        if stage["total"]
    ]


class RateMeter:
    """The speed of a stage or job, measured between the moments at which calls ended.

    Calls end in groups, so a window holds several of them however slow they are. The wait for the first ones does not count.

    Args:
        window: Seconds that are looked back; longer if few calls end.
        clock: Seconds of a monotonic clock.
    """

    def __init__(self, window: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._window, self._clock = window, clock
        self._done: int | None = None
        self._advances: deque[tuple[float, int]] = deque()

    def add(self, done: int) -> None:
        """Record how much is done by now."""
        now = self._clock()
        if self._done is not None and done < self._done:
            self._advances.clear()  # failed parts are tried again
        elif self._done is not None and done > self._done:
            self._advances.append((now, done))
        self._done = done
        while len(self._advances) > RELIABLE_ADVANCES and now - self._advances[1][0] >= self._window:
            self._advances.popleft()

    @property
    def is_reliable(self) -> bool:
        """Whether enough calls have ended for an estimate."""
        return len(self._advances) >= RELIABLE_ADVANCES

    @property
    def per_second(self) -> float | None:
        """Parts finished per second; ``None`` until enough has been recorded."""
        if not self._advances:
            return None
        (then, before), (last, done) = self._advances[0], self._advances[-1]
        usual_gap = (last - then) / max(1, len(self._advances) - 1)
        late = max(0.0, self._clock() - last - 2 * usual_gap)
        seconds = last - then + late
        return (done - before) / seconds if last - then >= TRUSTWORTHY_SECONDS else None


class JobProgress:
    """The display of a running job; pass every state to `update`, render at any time.

    Args:
        job: The job's first state.
        clock: Seconds of a monotonic clock.
    """

    def __init__(self, job: Json, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage_speeds: dict[str, RateMeter] = {}
        self.update(job)

    def update(self, job: Json) -> None:
        """Update to a newer state of the job."""
        self._job = job
        self.stages = stages_of(job)
        if self.status != "running" or not self._stage_speeds:
            self._speed = RateMeter(SPEED_SECONDS, self._clock)
            self._stage_speeds = {}
        self._speed.add(sum(stage.done for stage in self.stages))
        for stage in self.stages:
            self._stage_speeds.setdefault(stage.name, RateMeter(ESTIMATE_SECONDS, self._clock)).add(
                stage.done
            )
        self._elapsed, self._updated = _elapsed(job), self._clock()

    @property
    def status(self) -> str:
        """The job's status in that state."""
        return str(self._job["status"])

    def __rich__(self) -> RenderableType:
        """The stages' bars above a line of numbers."""
        bars = Table.grid(padding=(0, 2, 0, 0), expand=True)
        bars.add_column(width=12)
        bars.add_column(ratio=1)
        bars.add_column(justify="right", no_wrap=True)
        bars.add_column(justify="right", no_wrap=True)
        for stage in self.stages:
            bar = ProgressBar(
                total=stage.total, completed=stage.done, complete_style="cyan", finished_style="green"
            )
            bars.add_row(stage.name, bar, stage.of_total, _failed(stage))
        figures = Text(self.figures())
        return Group(bars, figures, *(Text(words, style="warning") for words in self._warnings()))

    def line(self) -> str:
        """The same in one line of plain text."""
        stages = [
            f"{stage.name} {stage.of_total}" + (f" ({stage.failed:,} failed)" if stage.failed else "")
            for stage in self.stages
        ]
        return " · ".join(stages + self._figures() + self._warnings())

    def _warnings(self) -> list[str]:
        return retrying_words(self._job) + failed_asks_words(self._job)

    def figures(self) -> str:
        """The line of numbers."""
        return " · ".join(self._figures())

    def _figures(self) -> list[str]:
        job = self._job
        since = self._clock() - self._updated if job["finished_at"] is None and job["started_at"] else 0.0
        figures = [status_words(job), *_in_progress(job), *_waiting_for(job)]
        rate = self._rate()
        if rate:
            figures.append(_speed(rate))
        eta = self.remaining_seconds()
        if eta is not None:
            figures.append(f"ETA about {duration(_rounded(eta))}")
        figures += [] if is_free(job["cost"]) else [f"cost {dollars(job['cost']['usd'])}"]
        figures.append(f"elapsed {duration(self._elapsed + since)}")
        again = sum(
            row["calls"] for row in job.get("usage", {}).get("by_model", ()) if row["stage"] == "repairing"
        )
        if again:
            figures.append(f"{counted(again, 'judging call')} repeated after an unreadable reply")
        spared = job.get("reuse")
        if spared:
            figures.append(f"{spared['same_job'] + spared['other_job']:,} reused replies")
        unpriced = job["cost"]["unpriced_calls"]
        return [*figures, f"+ {counted(unpriced, 'call')} of unknown price"] if unpriced else figures

    def remaining_seconds(self) -> float | None:
        """Return the time that the slowest stage still needs; ``None`` if a stage's speed is not known yet."""
        remaining = {
            stage.name: stage.total - stage.done for stage in self.stages if stage.total > stage.done
        }
        meters = {name: self._stage_speeds[name] for name in remaining}
        if not all(meter.is_reliable for meter in meters.values()):
            return None
        rates = {name: meter.per_second for name, meter in meters.items()}
        times = [remaining[name] / rate for name, rate in rates.items() if rate]
        return max(times) if times and len(times) == len(remaining) else None

    def _rate(self) -> float | None:
        """Calls per second: recent, or over the whole time once the job has ended."""
        if self._job["finished_at"] is None:
            return self._speed.per_second
        return sum(stage.done for stage in self.stages) / self._elapsed if self._elapsed else None


def follow(states: Iterable[Json], console: Console) -> Json:
    """Show a job until its states end.

    Args:
        states: The job's states, as they come; at least one.
        console: Where to; a live display if it is a terminal.

    Returns:
        The last state.
    """
    last: Json = {}
    with shown(console) as show:
        for last in states:
            show(last)
    return last


@contextmanager
def shown(console: Console) -> Iterator[Callable[[Json], None]]:
    """What shows a job's states as it is given them, until the block ends.

    Args:
        console: Where to; a live display if it is a terminal, a line now and then elsewhere.
    """
    made: list[JobProgress] = []
    live = Live(console=console, refresh_per_second=REFRESHES_PER_SECOND) if console.is_terminal else None
    printed = float("-inf")

    def show(job: Json) -> None:
        nonlocal printed
        former = made[0].status if made else None
        if not made:
            made.append(JobProgress(job))
            if live is not None:
                live.update(made[0])
        made[0].update(job)
        if live is None and (job["status"] != former or time.monotonic() - printed >= LINE_SECONDS):
            console.print(made[0].line(), soft_wrap=True)
            printed = time.monotonic()
        if _stops(job, former) and not (live and former is None):
            console.print(failure_view(job))

    with live or nullcontext():
        yield show


def _speed(rate: float) -> str:
    """A rate such as ``12 calls/s`` or, below one per second, ``5 calls/min``."""
    if rate >= 1:
        return f"{counted(round(rate), 'call')}/s"
    per_minute = round(rate * SECONDS_PER_MINUTE)
    return f"{counted(per_minute, 'call')}/min" if per_minute else "less than 1 call/min"


def _rounded(seconds: float) -> int:
    step = next(step for most, step in ETA_STEPS if seconds <= most)
    return max(step, round(seconds / step) * step)


def _stops(job: Json, before: str | None) -> bool:
    """Whether a job that is followed has just been paused by an error."""
    return job["status"] == "paused" != before and bool(job["error"])


def _in_progress(job: Json) -> list[str]:
    """Such as ``8 calls on the wire, 292 waiting``; nothing while workers have not reported their calls."""
    taken = sum(stage["running"] for stage in job["progress"].values())
    sent = job["on_the_wire"]
    if not taken or sent is None:
        return []
    return [f"{counted(sent, 'call')} on the wire, {max(0, taken - sent):,} waiting"]


def _waiting_for(job: Json) -> list[str]:
    """The batches and models that a job is waiting for."""
    words = (job.get("batches") or {}).get("waiting_for")
    batches = [f"waiting for {words}"] if words else []
    retried = {found["model"] for found in job.get("retrying") or ()}
    return batches + [_held(found) for found in job.get("held") or () if found["model"] not in retried]


def _held(found: Json) -> str:
    """Such as ``waiting for groq/llama until 14:02 (daily request limit reached)``, in the terminal's time zone."""
    until = datetime.fromisoformat(found["until"]).astimezone()
    why = f" ({found['reason']})" if found["reason"] else ""
    return printable(f"waiting for {found['model']} until {until:%H:%M}{why}")


def _failed(stage: Stage) -> Text:
    return Text(f"{stage.failed:,} failed", style="error" if stage.failed else "hint")


def _elapsed(job: Json) -> float:
    """Seconds since the job started, by the service's clock at its end and by ours until then."""
    if job["started_at"] is None:
        return 0.0
    end = datetime.now(UTC) if job["finished_at"] is None else datetime.fromisoformat(job["finished_at"])
    return max(0.0, (end - datetime.fromisoformat(job["started_at"])).total_seconds())
