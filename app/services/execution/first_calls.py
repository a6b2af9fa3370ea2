"""Decides which failures of a kind of call stop its job: the first calls, or a run of refusals, that all fail alike.

The first calls go one ahead, then few at a time until one is answered.
A kind is a model in a stage of a job. That a key is refused shows in its very first call, that a model refuses a parameter, or a judge does
not exist, in its first ones; what is paid meanwhile for other calls would be lost. Each worker counts by itself, so that as many fail as
:data:`FIRST_CALLS` times the workers; before one of them stops the job it asks the database whether another had an answer.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution import failures
from app.domain.providers.model import Model, Stage
from app.ports import FailureKind, ModelCallError
from app.services.execution.stop_signal import StopSignal

FIRST_CALLS = 10
"""Calls of a kind on the wire until one is answered; so many failures with the same answer, and none answered, stop the job."""

LEAD_SECONDS = 10.0
"""How long the first call goes alone at most: a model that thinks for minutes holds up nobody for so long."""

HALTING_SECONDS = 3.0
"""After a call whose answer stops the job, the next waits for so long: by then every shard of the job has been told."""

REMEMBERED_SECONDS = 600.0
"""A model that has answered another job so recently in the same stage, asked with the same parameters, need not show it anew."""

MOST_KINDS = 1000


class Gate:
    """Lets one pass, then :data:`FIRST_CALLS` at a time until it is opened."""

    __slots__ = ("_inside", "_lead", "_places", "is_open")

    def __init__(self, *, is_open: bool = False) -> None:
        self.is_open = is_open
        self._inside = 0
        self._places = asyncio.Semaphore(1)
        self._lead: asyncio.TimerHandle | None = None

    async def enter(self, stop: StopSignal) -> bool:
        """Waits for a place, or until the gate is open.

        Returns:
            Whether there is a place to be given back with :meth:`leave`: not if the gate is open.

        Raises:
            StoppedError: If the shard was stopped before.
        """
        with stop.interruptible():
            await self._places.acquire()
        self._inside += 1
        if self._lead is None:
            self._lead = asyncio.get_running_loop().call_later(LEAD_SECONDS, self._end_lead)
        if self.is_open:
            self.leave()  # whoever waits passes likewise, one after the other
        return not self.is_open

    def leave(self) -> None:
        """Gives back a place."""
        self._inside -= 1
        self._places.release()
        self._end_lead()

    def _end_lead(self) -> None:
        """Lets others pass beside the first, once."""
        if self._lead is not None and not self._lead.cancelled():
            self._lead.cancel()
            for _ in range(FIRST_CALLS - 1):
                self._places.release()

    def leave_later(self) -> None:
        """Gives back the place of a call whose answer stops the job, once the job's other calls have been told."""
        asyncio.get_running_loop().call_later(HALTING_SECONDS, self._leave_to_one)

    def _leave_to_one(self) -> None:
        """Gives back a place; whoever comes then goes ahead again, if it was of the one that did."""
        if self._lead is not None and not self._lead.cancelled():
            self._lead.cancel()
            self._lead = None
            self._inside -= 1
            self._places.release()
        else:
            self.leave()

    @property
    def is_idle(self) -> bool:
        """Whether nobody has a place."""
        return self._inside == 0


class Kind(Gate):
    """The calls of one kind in this process; open once one was answered.

    Attributes:
        job_id: Whose.
        model: Called.
        stage: In which stage.
        failures: Calls that failed for good before, by the code and status of the answer.
    """

    __slots__ = ("failures", "job_id", "model", "run", "stage")

    def __init__(self, job_id: str, model: Model, stage: Stage, *, is_open: bool) -> None:
        super().__init__(is_open=is_open)
        self.job_id = job_id
        self.model = model
        self.stage = stage
        self.failures: Counter[tuple[str, int | None]] | None = Counter()
        """``None`` once a call of this job was answered."""
        self.run: Run | None = None
        """Equal refusals since the last answer."""

    def replied(self, sent_at: float) -> None:
        """Note an answer; one to a call that was sent before the run of refusals began does not end the run."""
        if self.run is not None and sent_at > self.run.began:
            self.run = None


class Run:
    """Equal refusals of different calls in a row, after the model had answered.

    Attributes:
        answer: Code and status that they have in common.
        began: When the first one came, by the monotonic clock.
        calls: How many there are.
    """

    __slots__ = ("answer", "began", "calls")

    def __init__(self, answer: tuple[str, int | None]) -> None:
        self.answer = answer
        self.began = time.monotonic()
        self.calls = 0


class FirstTexts(Gate):
    """The first texts of a job in this process: written and judged before many are written.

    Open once all judges have answered, or once so many texts are through that it is not the judges whom the job waits for.
    """

    __slots__ = ("_ended", "_judging")

    def __init__(self, judging: Sequence[Kind]) -> None:
        super().__init__(is_open=all(kind.is_open for kind in judging))
        self._judging = judging
        self._ended = 0

    def through(self) -> None:
        """Notes that a text has been written and judged, or failed."""
        self._ended += 1
        self.is_open = self._ended >= FIRST_CALLS or all(kind.is_open for kind in self._judging)


class FirstCalls:
    """One a process.

    Args:
        engine: Where to ask for other workers' answers.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._kinds: dict[tuple[str, str, str, Stage], Kind] = {}
        self._texts: dict[str, FirstTexts] = {}
        self._answered: dict[tuple[str, str, str, Stage], float] = {}

    def kind(self, job_id: str, model: Model, stage: Stage) -> Kind:
        """The kind of a call."""
        name = (job_id, model.connection, model.name, stage)
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds = {name: kind for name, kind in self._kinds.items() if not kind.is_idle}
            answered = self._answered.get(_asked(model, stage), float("-inf"))
            is_open = time.monotonic() - answered < REMEMBERED_SECONDS
            kind = self._kinds[name] = Kind(job_id, model, stage, is_open=is_open)
        return kind

    def texts(self, job_id: str, judges: Sequence[Model]) -> FirstTexts:
        """The first texts of a job with these judges."""
        texts = self._texts.get(job_id)
        if texts is None:
            if len(self._texts) >= MOST_KINDS:
                self._texts = {job: one for job, one in self._texts.items() if not one.is_idle}
            judging = [self.kind(job_id, judge, Stage.JUDGING) for judge in judges]
            texts = self._texts[job_id] = FirstTexts(judging)
        return texts

    def answered(self, kind: Kind) -> None:
        """Notes that a call of a kind was answered."""
        kind.failures, kind.is_open = None, True
        if len(self._answered) >= MOST_KINDS:
            self._answered.clear()
        self._answered[_asked(kind.model, kind.stage)] = time.monotonic()

    async def stops(self, kind: Kind, error: ModelCallError) -> bool:
        """Notes that a call has failed for good; returns whether the job is to stop for it.

        A prompt that a filter refused says nothing of its kind.
        """
        if kind.failures is None or error.kind is FailureKind.FILTERED:
            return False
        answer = (error.code, error.status)
        kind.failures[answer] += 1
        if kind.failures[answer] < FIRST_CALLS:
            return False
        if await self.any_answer(kind):
            self.answered(kind)
            return False
        if kind.failures is not None:
            kind.failures.clear()  # whoever resumes the job has changed something: they are counted anew
        return True

    async def any_answer(self, kind: Kind) -> bool:
        """Return whether a call of a kind was answered in any process."""
        async with self._engine.connect() as connection:
            return await failures.any_answer(
                connection, kind.job_id, kind.stage, kind.model.connection, kind.model.name
            )

    def ends_run(self, kind: Kind, error: ModelCallError) -> bool:
        """Note a refusal after an answer; return whether it is the last of a run that stops the job.

        Failures that are known to concern their item belong to no run.
        """
        if kind.failures is not None or not error.unexplained:
            return False
        answer = (error.code, error.status)
        run = kind.run
        if run is None or run.answer != answer:
            run = kind.run = Run(answer)
        run.calls += 1
        if run.calls < FIRST_CALLS:
            return False
        kind.run = None  # resuming the job counts anew
        return True


def _asked(model: Model, stage: Stage) -> tuple[str, str, str, Stage]:
    return model.connection, model.name, repr(model.parameters), stage
