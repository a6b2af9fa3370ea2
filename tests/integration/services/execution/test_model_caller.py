"""One call with everything around it. The chat model is scripted; rows go to a real database."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.execution.shards import Claim
from app.domain.providers.model import (
    ChatReply,
    ChatRequest,
    FinishReason,
    Model,
    ProviderLimits,
    Stage,
    Usage,
)
from app.ports import (
    CallOutcome,
    FailureKind,
    LimiterUnavailableError,
    ModelCallError,
    Observation,
    Price,
    ProviderUnreachableError,
    Slot,
)
from app.services.execution import call_outcomes, expected_tokens, model_caller, permits
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.call_rows import CallKey
from app.services.execution.first_calls import FirstCalls
from app.services.execution.model_caller import ModelCaller
from app.services.execution.result_writer import BatchWriter
from app.services.execution.retries import CallFailedError, JobMustStopError
from app.services.execution.stop_signal import StoppedError, StopReason, StopSignal
from tests.integration.jobs import claimed, execute, new_job
from tests.integration.no_limits import NoLimits

MODEL = Model("writer", "simulated", "writer")
REPLY = ChatReply("I stay in.", FinishReason.STOP, Usage(10, 4), model_snapshot="writer-1")
KEY = CallKey(Stage.GENERATION, run=1, item=0)
OVERLOADED = ModelCallError("busy", kind=FailureKind.RETRY, code="overloaded", status=529)


@dataclass
class Script(NoLimits):
    """A model that gives these answers, one after the other, and the limiter in front of it."""

    answers: Sequence[ChatReply | Exception | Callable[[], Awaitable[ChatReply]]]
    requests: list[ChatRequest] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    observed: list[Observation] = field(default_factory=list)
    limiter_failures: int = 0
    away: bool = False
    probe_answer: ModelCallError | None = None
    probes: int = 0
    unreachable_seconds: float = 0.0
    acquired: int = 0
    usd_per_token: float = 0.5
    inside: int = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        self.started.set()
        answer = self.answers[len(self.requests) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, ChatReply) else await answer()

    async def admit(self, connection: str, model: str, expected: Usage, tenant: str | None = None) -> Slot:
        if self.limiter_failures:
            self.limiter_failures -= 1
            raise LimiterUnavailableError
        if self.unreachable_seconds:
            raise ProviderUnreachableError("ConnectionRefusedError: refused", self.unreachable_seconds)
        self.acquired += 1
        self.inside += 1
        return self

    def release(self) -> None:
        self.inside -= 1

    def is_away(self, connection: str) -> bool:
        return self.away

    async def probe(self, connection: str, tenant: str) -> None:
        self.probes += 1
        if self.probe_answer is not None:
            raise self.probe_answer

    def observe(self, connection: str, model: str, observation: Observation) -> None:
        self.observed.append(observation)

    def body_bytes(self, request: ChatRequest) -> int:
        return len(request.user.encode())

    def price(self, model: Model, usage: Usage, *, batched: bool = False) -> Price:
        return Price(usage.input_tokens * self.usd_per_token, "operator")


class Bench:
    """A caller, its claim and its stop signal."""

    def __init__(self, engine: AsyncEngine, writer: BatchWriter, claim: Claim) -> None:
        self.engine = engine
        self.writer = writer
        self.claim = claim
        self.stop = StopSignal()
        self.callers: dict[int, ModelCaller] = {}

    async def call(self, script: Script, *, attempts: int = 3, model: Model = MODEL) -> ChatReply:
        caller = self.callers.setdefault(
            id(script),
            ModelCaller(
                chat=script,
                limiter=script,
                prices=script,
                writer=self.writer,
                attempts=attempts,
                deadline_seconds=7.0,
                in_flight=lambda *_: 1,
                budgets=BudgetKeeper(self.engine),
                first_calls=FirstCalls(self.engine),
            ),
        )
        return await caller.call(model, "Be.", "Speak.", key=KEY, claim=self.claim, stop=self.stop)

    async def accounts(self) -> list[tuple[int, str, str | None, int | None, float | None]]:
        await asyncio.sleep(0)
        await self.writer._idle.wait()
        rows = await execute(
            self.engine,
            "SELECT attempt, outcome, code, http_status, usd FROM calls ORDER BY started_at, attempt",
        )
        return [tuple(row) for row in rows]


@pytest.fixture
async def bench(engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(model_caller, "FIRST_BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(permits, "LONGEST_WAIT_FOR_LIMITER_SECONDS", 0.01)
    claim = await claimed(engine, (await new_job(engine)).id)
    writer = BatchWriter(ResultWriter(engine))
    async with writer.running():
        yield Bench(engine, writer, claim)


class TestOutage:
    async def test_does_not_count_against_a_call(self, bench: Bench) -> None:
        refused = ModelCallError("refused", kind=FailureKind.RETRY, code="connection_failed")
        script = Script([*[refused] * 10, REPLY])
        assert await bench.call(script, attempts=2) == REPLY
        loading = ModelCallError("loading", kind=FailureKind.RETRY, code="http_503", status=503)
        script = Script([*[loading] * 10, REPLY], away=True)
        assert await bench.call(script, attempts=2) == REPLY

    async def test_counts_as_long_as_the_server_is_not_known_to_be_away(self, bench: Bench) -> None:
        loading = ModelCallError("loading", kind=FailureKind.RETRY, code="http_503", status=503)
        with pytest.raises(CallFailedError):
            await bench.call(Script([loading] * 2), attempts=2)

    @pytest.mark.parametrize("status", [None, 502, 504])
    async def test_does_not_count_against_a_call_where_an_empty_request_meets_it_too(
        self, bench: Bench, status: int | None
    ) -> None:
        lost = ModelCallError("lost", kind=FailureKind.RETRY, code="connection_lost", status=status)
        script = Script([*[lost] * 10, REPLY], away=True, probe_answer=lost)
        assert await bench.call(script, attempts=2) == REPLY

    @pytest.mark.parametrize("code", ["http_400", "connection_failed"])
    async def test_is_not_blamed_for_a_call_that_alone_loses_its_connection_or_ends_its_server(
        self, bench: Bench, code: str
    ) -> None:
        lost = ModelCallError("lost", kind=FailureKind.RETRY, code="connection_lost")
        answer = ModelCallError(
            "no", kind=FailureKind.RETRY, code=code, status=400 if code == "http_400" else None
        )
        script = Script([lost] * 3, away=True, probe_answer=answer)
        with pytest.raises(CallFailedError, match="connection_lost"):
            await bench.call(script, attempts=3)
        assert script.probes == 3
        # A server in between may answer empty requests by itself: that is no news of the one behind it.
        assert [seen.outcome for seen in script.observed] == [CallOutcome.UNREACHABLE] * 3

    async def test_is_not_blamed_for_ever_for_a_call_that_ends_its_server_each_time(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(call_outcomes, "MOST_UNREACHED", 4)
        lost = ModelCallError("lost", kind=FailureKind.RETRY, code="connection_lost")
        script = Script([lost] * 6, away=True, probe_answer=lost)
        with pytest.raises(CallFailedError, match="connection_lost"):
            await bench.call(script, attempts=2)
        assert len(script.requests) == 6

    async def test_does_not_hide_that_a_call_that_reached_the_server_failed(self, bench: Bench) -> None:
        broken = ModelCallError("broken", kind=FailureKind.RETRY, code="http_500", status=500)
        with pytest.raises(CallFailedError, match="http_500"):
            await bench.call(Script([broken] * 2, away=True), attempts=2)

    async def test_that_lasts_stops_the_job_with_the_reason(self, bench: Bench) -> None:
        with pytest.raises(JobMustStopError, match=r"0:10:00 .*: ConnectionRefusedError: refused") as stopped:
            await bench.call(Script([], unreachable_seconds=600.0))
        assert stopped.value.code == "provider_unreachable"


class TestCost:
    @pytest.mark.parametrize(("usd_per_token", "usd"), [(0.5, None), (0.0, 0.0)])
    async def test_a_call_that_timed_out_is_of_unknown_cost_unless_its_model_is_free(
        self, bench: Bench, usd_per_token: float, usd: float | None
    ) -> None:
        late = ModelCallError("late", kind=FailureKind.RETRY, code="timeout", maybe_paid=True)
        with pytest.raises(CallFailedError):
            await bench.call(Script([late], usd_per_token=usd_per_token), attempts=1)
        assert await bench.accounts() == [(1, "retry", "timeout", None, usd)]


class TestModels:
    async def test_however_many_there_were_few_idle_ones_are_kept(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(permits, "MOST_IDLE", 3)
        monkeypatch.setattr(expected_tokens, "MOST_REMEMBERED", 3)
        go_on = asyncio.Event()

        async def late() -> ChatReply:
            await go_on.wait()
            return REPLY

        script = Script([late, *[REPLY] * 10])
        held = asyncio.create_task(bench.call(script))
        await script.started.wait()
        for number in range(10):
            await bench.call(script, model=Model(f"writer{number}", "simulated", f"writer{number}"))
        (caller,) = bench.callers.values()
        assert len(caller._permits._models) <= 3
        assert len(caller._tokens._written) <= 3
        assert (MODEL.connection, MODEL.name) in caller._permits._models  # its place is taken
        go_on.set()
        assert await held is REPLY


class TestUnwrittenCalls:
    async def test_hold_back_also_those_that_stood_in_line_before(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        writer = BatchWriter(ResultWriter(engine), most_unwritten=1)
        bench, script = Bench(engine, writer, claim), Script([REPLY] * 3)
        calls = [asyncio.create_task(bench.call(script)) for _ in range(3)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(calls, timeout=0.05, return_when=asyncio.ALL_COMPLETED)
        assert len(script.requests) == 1  # nobody writes yet
        async with writer.running():
            await asyncio.wait_for(asyncio.gather(*calls), 20)
            assert len(await bench.accounts()) == 3

    async def test_keep_nobody_from_stopping_and_no_turn(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        writer = BatchWriter(ResultWriter(engine), most_unwritten=1)
        bench, script = Bench(engine, writer, claim), Script([REPLY] * 2)
        await bench.call(script)
        stopped = asyncio.create_task(bench.call(script))
        await asyncio.sleep(0.05)
        bench.stop.set(StopReason.SHUTDOWN)
        with pytest.raises(StoppedError):
            await asyncio.wait_for(stopped, 20)
        bench.stop = StopSignal()
        async with writer.running():
            await asyncio.wait_for(bench.call(script), 20)
        assert writer.on_the_wire == 0


class TestAttempts:
    async def test_an_answer_is_accounted_for(self, bench: Bench) -> None:
        script = Script([REPLY])
        assert await bench.call(script) is REPLY
        assert await bench.accounts() == [(1, "ok", None, 200, 5.0)]
        (request,) = script.requests
        assert request.request_id == f"{bench.claim.job_id}/generation/0/1/0/a1"
        assert request.deadline_seconds == 7.0

    async def test_what_may_pass_is_tried_again_and_each_attempt_is_a_row(self, bench: Bench) -> None:
        timeout = ModelCallError("late", kind=FailureKind.RETRY, code="timeout", maybe_paid=True)
        script = Script([OVERLOADED, timeout, REPLY])
        assert await bench.call(script) is REPLY
        assert await bench.accounts() == [
            (1, "retry", "overloaded", 529, None),
            (2, "retry", "timeout", None, None),
            (3, "ok", None, 200, 5.0),
        ]
        assert [request.request_id[-2:] for request in script.requests] == ["a1", "a2", "a3"]

    async def test_after_the_last_attempt_the_item_has_failed(self, bench: Bench) -> None:
        with pytest.raises(CallFailedError, match="overloaded: busy"):
            await bench.call(Script([OVERLOADED] * 3), attempts=3)
        assert len(await bench.accounts()) == 3

    async def test_what_can_t_be_read_is_asked_for_once_more_only(self, bench: Bench) -> None:
        unreadable = ModelCallError(
            "no JSON", kind=FailureKind.RETRY, code="malformed_reply", most_attempts=2
        )
        with pytest.raises(CallFailedError, match="malformed_reply: no JSON"):
            await bench.call(Script([unreadable] * 12), attempts=12)
        assert len(await bench.accounts()) == 2

    async def test_being_told_to_wait_is_no_failure_and_holds_everybody_back(self, bench: Bench) -> None:
        limited = ModelCallError(
            "slow", kind=FailureKind.RETRY, code="rate_limit", status=429, retry_after=0.01
        )
        script = Script([limited] * 5 + [REPLY])
        assert await bench.call(script, attempts=1) is REPLY
        assert [(seen.outcome, seen.retry_after) for seen in script.observed[:5]] == [
            (CallOutcome.RATE_LIMITED, 0.01)
        ] * 5

    async def test_an_item_that_can_never_succeed_is_not_tried_again(self, bench: Bench) -> None:
        error = ModelCallError("too long", kind=FailureKind.ITEM, code="context_length_exceeded", status=400)
        with pytest.raises(CallFailedError, match="context_length_exceeded"):
            await bench.call(Script([error]))
        assert await bench.accounts() == [(1, "item", "context_length_exceeded", 400, None)]

    async def test_an_error_of_the_whole_job_stops_it(self, bench: Bench) -> None:
        error = ModelCallError("no credit", kind=FailureKind.JOB, code="insufficient_quota", status=429)
        with pytest.raises(JobMustStopError, match="no credit") as caught:
            await bench.call(Script([error]))
        assert (caught.value.code, caught.value.model) == ("insufficient_quota", "simulated/writer")
        assert await bench.accounts() == [(1, "job", "insufficient_quota", 429, None)]

    async def test_whatever_breaks_in_one_is_accounted_for_as_perhaps_paid(self, bench: Bench) -> None:
        with pytest.raises(ZeroDivisionError):
            await bench.call(Script([ZeroDivisionError()]))
        assert await bench.accounts() == [(1, "retry", "internal_error", None, None)]
        assert await execute(bench.engine, "SELECT FROM calls WHERE maybe_paid")

    async def test_the_model_is_made_ready_before_anything_is_asked_for(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = Script([REPLY])
        held: list[tuple[str, int, int]] = []

        async def prepare(connection: str, _tenant: str) -> None:
            held.append((connection, script.inside, script.acquired))

        monkeypatch.setattr(script, "prepare", prepare)
        await bench.call(script)
        assert held == [("simulated", 0, 0)]

    async def test_without_the_limiter_no_call_goes_out(self, bench: Bench) -> None:
        script = Script([REPLY], limiter_failures=3)
        assert await bench.call(script) is REPLY
        assert (script.acquired, len(script.requests)) == (1, 1)


class TestStop:
    async def test_a_call_that_waits_for_a_slot_does_not_start(self, bench: Bench) -> None:
        release = asyncio.Event()

        async def slow() -> ChatReply:
            await release.wait()
            return REPLY

        script = Script([slow, REPLY])
        flying = asyncio.create_task(bench.call(script))
        await script.started.wait()
        waiting = asyncio.create_task(bench.call(script))
        await asyncio.sleep(0.01)
        bench.stop.set(StopReason.JOB_INACTIVE)
        with pytest.raises(StoppedError):
            await waiting
        # What is on the wire is paid for: it is awaited and accounted for.
        assert not flying.done()
        release.set()
        assert await flying is REPLY
        assert await bench.accounts() == [(1, "ok", None, 200, 5.0)]
        assert len(script.requests) == 1

    async def test_a_call_on_the_wire_that_fails_is_not_tried_again(self, bench: Bench) -> None:
        release = asyncio.Event()

        async def slow() -> ChatReply:
            await release.wait()
            raise OVERLOADED

        script = Script([slow, REPLY])
        flying = asyncio.create_task(bench.call(script))
        await script.started.wait()
        bench.stop.set(StopReason.SHUTDOWN)
        release.set()
        with pytest.raises(StoppedError):
            await flying
        assert [row[:2] for row in await bench.accounts()] == [(1, "retry")]

    async def test_waiting_before_the_next_attempt_ends_at_once(self, bench: Bench) -> None:
        later = ModelCallError("later", kind=FailureKind.RETRY, code="overloaded", status=503, retry_after=60)
        script = Script([later, REPLY])
        waiting = asyncio.create_task(bench.call(script))
        await script.started.wait()
        await asyncio.sleep(0.01)
        bench.stop.set(StopReason.SHUTDOWN)
        with pytest.raises(StoppedError):
            await asyncio.wait_for(waiting, 1)

    async def test_a_cancellation_that_is_swallowed_on_the_way_does_not_let_it_go_out(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = Script([REPLY])

        async def swallow(*_: object) -> Slot:
            script.inside += 1
            bench.stop.set(StopReason.JOB_INACTIVE)
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            return script

        monkeypatch.setattr(script, "admit", swallow)
        with pytest.raises(StoppedError):
            await asyncio.wait_for(bench.call(script), 20)
        assert (script.requests, script.inside) == ([], 0)

    async def test_stopped_calls_leave_their_slots_to_others(self, bench: Bench) -> None:
        script = Script([OVERLOADED, REPLY])
        caller_task = asyncio.create_task(bench.call(script))
        await script.started.wait()
        bench.stop.set(StopReason.SHUTDOWN)
        with pytest.raises(StoppedError):
            await caller_task
        bench.stop = StopSignal()
        assert await asyncio.wait_for(bench.call(script), 5) is REPLY

    async def test_a_permit_that_grew_old_while_the_job_was_looked_at_is_not_used(self, bench: Bench) -> None:
        script = Script([REPLY])
        bench.stop.seen_active(time.monotonic() - 60)
        calling = asyncio.create_task(bench.call(script))
        await asyncio.sleep(1.5 * permits.SLOT_SECONDS)
        assert (script.acquired, script.requests) == (1, [])
        bench.stop.seen_active(time.monotonic())
        assert await calling is REPLY
        assert script.acquired == 2


class TestLimiter:
    async def test_learns_of_a_reply_what_it_took_and_what_limits_it_names(self, bench: Bench) -> None:
        # "Be." and "Speak." are 9 characters: 2 tokens; how many they really are, and the reply, the first call shows.
        limits = ProviderLimits(requests_per_minute=500)
        script = Script([REPLY._replace(limits=limits), REPLY])
        await bench.call(script)
        await bench.call(script)
        first, second = script.observed
        assert (first.outcome, first.limits, first.usage) == (CallOutcome.ANSWERED, limits, REPLY.usage)
        assert first.latency_seconds > 0
        assert (first.beyond, second.beyond) == ((10 - 2, 4), (0, 0))
        assert script.inside == 0

    @pytest.mark.parametrize(
        ("status", "code", "kind", "outcome"),
        [
            (429, "rate_limit", FailureKind.RETRY, CallOutcome.RATE_LIMITED),
            (429, "insufficient_quota", FailureKind.JOB, CallOutcome.REJECTED),
            (529, "overloaded", FailureKind.RETRY, CallOutcome.OVERLOADED),
            (503, "http_503", FailureKind.RETRY, CallOutcome.OVERLOADED),
            (None, "timeout", FailureKind.RETRY, CallOutcome.TIMED_OUT),
            (504, "http_504", FailureKind.RETRY, CallOutcome.TIMED_OUT),
            (500, "http_500", FailureKind.RETRY, CallOutcome.FAILED),
            (None, "unencodable_request", FailureKind.ITEM, CallOutcome.FAILED),
            (None, "connection_failed", FailureKind.RETRY, CallOutcome.UNREACHABLE),
            (None, "connection_lost", FailureKind.RETRY, CallOutcome.UNREACHABLE),
            (502, "http_502", FailureKind.RETRY, CallOutcome.OVERLOADED),
            (400, "too_long", FailureKind.ITEM, CallOutcome.REJECTED),
            (200, "malformed_reply", FailureKind.RETRY, CallOutcome.REJECTED),
        ],
    )
    async def test_learns_of_a_failure_whether_the_provider_had_no_room_or_was_away(
        self, bench: Bench, status: int | None, code: str, kind: FailureKind, outcome: CallOutcome
    ) -> None:
        limits = ProviderLimits(requests_per_minute=500)
        error = ModelCallError("no", kind=kind, code=code, status=status, limits=limits, retry_after=0.01)
        script = Script([error, REPLY])
        with contextlib.suppress(CallFailedError, JobMustStopError):
            await bench.call(script)
        seen = script.observed[0]
        assert (seen.outcome, seen.limits, seen.retry_after) == (outcome, limits, 0.01)

    async def test_gets_its_permit_back_whatever_becomes_of_the_call(self, bench: Bench) -> None:
        error = ModelCallError("too long", kind=FailureKind.ITEM, code="too_long", status=400)
        script = Script([OVERLOADED, error])
        with pytest.raises(CallFailedError):
            await bench.call(script)
        assert script.inside == 0
