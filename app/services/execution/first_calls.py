"""Decides which failures of a kind of call stop its job: the first calls, or a run of refusals, that all fail alike.

A kind is a model in a stage of a job. Its first call goes alone, then few at a time until one is answered: a refused key shows in the
first call, a refused parameter or a missing judge in the first few. A run of refusals after answers, of a kind or of all the job's calls to
a connection, shows that credit has run out in words that no rule knows. Each worker counts by itself; before it stops the job it asks the
database whether another worker had an answer.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from weakref import WeakValueDictionary

from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
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

DOUBTED_AFTER = 3
"""Refusals in a row, after an answer, from which on calls are sent one at a time."""

FEWEST_TRIALS = 3
"""Calls sent one at a time that are refused, too, before a run of :data:`FIRST_CALLS` refusals stops the job."""

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


class Run:
    """Refusals in a row with the same answer, in the order in which the calls were sent.

    After a few of them calls are sent one at a time, so that a provider that refuses everything gets few more.

    Attributes:
        began: When the first of the refused calls was sent.
        calls: The refused calls.
        is_doubted: Whether calls are to be sent one at a time.
    """

    __slots__ = ("_answer", "_doubted_at", "_is_deciding", "_trials", "began", "calls", "is_doubted")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._answer: tuple[str, int | None] | None = None
        self._doubted_at: datetime | None = None
        self._is_deciding = self.is_doubted = False
        self._trials = self.calls = 0
        self.began: datetime | None = None

    def refused(self, answer: tuple[str, int | None], sent_at: datetime) -> None:
        """Note a refusal by its code and status."""
        if answer != self._answer:
            self.clear()
            self._answer, self.began = answer, sent_at
        self.calls += 1
        if self._doubted_at is not None:
            self._trials += sent_at > self._doubted_at
        elif self.calls >= DOUBTED_AFTER:
            self._doubted_at, self.is_doubted = clock.now(), True

    def answered(self, sent_at: datetime) -> None:
        """Note an answer; one to a call that was sent before the run began does not end it."""
        if self.began is not None and sent_at > self.began:
            self.clear()

    def is_to_be_decided(self) -> bool:
        """Return whether the run is long enough to stop the job, once a run."""
        if self._is_deciding or self.calls < FIRST_CALLS or self._trials < FEWEST_TRIALS:
            return False
        self._is_deciding = True
        return True


class Account:
    """A job's calls to one connection in this process.

    Attributes:
        run: Refusals in a row of all its models.
        trial: Held by the only call that may be on the wire while refusals are doubted.
    """

    __slots__ = ("__weakref__", "run", "trial")

    def __init__(self) -> None:
        self.run = Run()
        self.trial = asyncio.Lock()


class Kind(Gate):
    """The calls of one kind in this process; open once one was answered.

    Attributes:
        job_id: The job.
        model: The model called.
        stage: The stage.
        account: All calls of the job to the model's connection.
        failures: Numbers of failed calls, by the code and status of the answer.
        run: Refusals in a row.
    """

    __slots__ = ("account", "failures", "job_id", "model", "run", "stage")

    def __init__(self, job_id: str, model: Model, stage: Stage, account: Account, *, is_open: bool) -> None:
        super().__init__(is_open=is_open)
        self.job_id = job_id
        self.model = model
        self.stage = stage
        self.account = account
        self.failures: Counter[tuple[str, int | None]] | None = Counter()
        """``None`` once a call of this job was answered."""
        self.run = Run()

    @property
    def is_doubted(self) -> bool:
        """Whether calls are to be sent one at a time."""
        return self.run.is_doubted or self.account.run.is_doubted

    async def starts_trial(self, stop: StopSignal) -> bool:
        """Wait until no other call is on trial; return ``False`` if calls need no trial any more.

        Raises:
            StoppedError: If the shard was stopped before.
        """
        trial = self.account.trial
        with stop.interruptible():
            await trial.acquire()
        if self.is_doubted:
            return True
        trial.release()
        return False

    def answered(self, sent_at: datetime) -> None:
        """Note an answer by when its call was sent."""
        self.run.answered(sent_at)
        self.account.run.answered(sent_at)

    def refused(self, error: ModelCallError, sent_at: datetime) -> None:
        """Note a refusal that may concern more than its item."""
        for run in (self.run, self.account.run):
            run.refused((error.code, error.status), sent_at)


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
        self._accounts: WeakValueDictionary[tuple[str, str], Account] = WeakValueDictionary()
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
            is_open = clock.monotonic() - answered < REMEMBERED_SECONDS
            account = self._accounts.setdefault((job_id, model.connection), Account())
            kind = self._kinds[name] = Kind(job_id, model, stage, account, is_open=is_open)
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
        self._answered[_asked(kind.model, kind.stage)] = clock.monotonic()

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
        return await self._any_answer(kind, kind.model.name, kind.stage)

    async def ends_run(self, kind: Kind) -> bool:
        """Return whether refusals in a row stop the job: not if another process has had an answer in the meantime."""
        for run, model, stage in ((kind.run, kind.model.name, kind.stage), (kind.account.run, None, None)):
            if not run.is_to_be_decided():
                continue
            began = run.began
            try:
                stops = not await self._any_answer(kind, model, stage, began) and run.began is began
            finally:
                run.clear()
            if stops:
                if kind.failures is not None:
                    kind.failures.clear()
                return True
        return False

    async def _any_answer(
        self, kind: Kind, model: str | None, stage: Stage | None, since: datetime | None = None
    ) -> bool:
        async with self._engine.connect() as connection:
            of = kind.model.connection
            return await failures.any_answer(connection, kind.job_id, of, model, stage, since)


def _asked(model: Model, stage: Stage) -> tuple[str, str, str, Stage]:
    return model.connection, model.name, repr(model.parameters), stage
