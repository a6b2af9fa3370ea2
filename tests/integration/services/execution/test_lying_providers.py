"""Budgets against providers that lie about their bills, break off, or bill what they refuse, also where a worker dies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import pytest
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import Held, ResultWriter
from app.db.execution.shards import Claim
from app.db.jobs.budgets import Account, lock_account
from app.domain.jobs.budget import NANOS, Amount, Budget, nanos_of
from app.domain.providers.model import Model, ModelParameters, Stage, Usage
from app.llm.connections.connections import Connection, Connections, ModelPrices
from app.llm.gateway import Gateway
from app.llm.models.prices import GenaiPriceBook
from app.llm.models.table import takes_at
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.call_rows import CallKey
from app.services.execution.first_calls import FirstCalls
from app.services.execution.model_caller import ModelCaller
from app.services.execution.result_writer import BatchWriter
from app.services.execution.retries import CallFailedError, JobMustStopError
from app.services.execution.stop_signal import StoppedError, StopSignal
from app.services.jobs.control import resume_job
from app.services.jobs.view import view_job
from app.services.keys.tenant_limits import reset_bounds
from tests.integration.jobs import (
    TENANT,
    claimed,
    control_dependencies,
    execute,
    expire,
    new_job,
    scalar,
    take,
)
from tests.integration.llm.conftest import OPENAI_REPLY
from tests.integration.llm.provider_replies import PAGE, events
from tests.integration.llm.stub_provider import Answer, Seen, StubProvider
from tests.integration.no_limits import NoLimits

MOST = 1_000
"""``max_tokens`` of all calls."""
IN_FLIGHT = 6
HONEST = 2 * IN_FLIGHT
"""Calls that every provider answers honestly, so that its first lie meets a full number of calls in flight."""
PRICES = ModelPrices(input=2.5, output=10)
MODEL = "acme/m"


class Exchange(NamedTuple):
    """A provider's answer, and the tokens for which it charges."""

    answer: Answer
    bill: Usage
    cost: float = 0.0
    """Dollars that it charges at least."""


Lie = Callable[[Usage, int], Exchange]
"""Answers a call whose honest worst case is given; the number counts calls."""


def counts(bill: Usage, **more: object) -> dict[str, Any]:
    return {"prompt_tokens": bill.input_tokens, "completion_tokens": bill.output_tokens} | more


def told(bill: Usage, text: str = "I stay in.", **usage: object) -> Answer:
    message = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Answer.of_json(OPENAI_REPLY | {"choices": [message], "usage": counts(bill, **usage)})


def reported(change: Callable[[Usage, int], Usage]) -> Lie:
    """Charges what it reports."""
    return lambda worst, number: Exchange(told(change(worst, number)), change(worst, number))


def failed(status: int, body: Callable[[dict[str, Any]], object]) -> Lie:
    """Charges every other call, which it refuses."""

    def answer(worst: Usage, number: int) -> Exchange:
        if number % 2:
            return Exchange(told(worst), worst)
        return Exchange(Answer.of_json(body(counts(worst)), status), worst)

    return answer


def hidden(usage: Mapping[str, object] | None, text: str = "I stay in.") -> Lie:
    """Charges the worst case, and reports something else."""
    message = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"choices": [message]} | ({} if usage is None else {"usage": dict(usage)})
    return lambda worst, _: Exchange(Answer.of_json(body), worst)


def sometimes(answer: Answer) -> Lie:
    return lambda worst, number: Exchange(told(worst) if number % 2 else answer, worst)


def error(usage: object) -> dict[str, object]:
    return {"error": {"message": "the model failed", "code": "server_error"}, "usage": usage}


HUGE = 2**31
SAID = {"message": {"role": "assistant", "content": "I stay in."}, "finish_reason": "stop"}

LIES: dict[str, Lie] = {
    "ignores max_tokens": reported(lambda worst, _: worst._replace(output_tokens=5 * MOST)),
    "reads a hidden prompt": reported(lambda worst, _: worst._replace(input_tokens=50 * MOST)),
    "ignores max_tokens now and then": reported(
        lambda worst, number: worst._replace(output_tokens=MOST * (8 if number % 5 == 0 else 1))
    ),
    "bills a little more": reported(lambda worst, _: worst._replace(output_tokens=MOST + 200)),
    "reports a higher cost": lambda worst, _: Exchange(told(worst, cost=0.05), worst, 0.05),
    "reports only a cost": lambda worst, _: Exchange(
        Answer.of_json({"choices": [SAID], "usage": {"cost": 0.05}}), worst, 0.05
    ),
    "reports only no cost": lambda worst, _: Exchange(
        Answer.of_json({"choices": [SAID], "usage": {"cost": 0}}), worst
    ),
    "reports no cost": lambda worst, _: Exchange(told(worst, cost=0), worst),
    "error in the choice": failed(200, lambda usage: {"choices": [{"error": {"code": 502}}], "usage": usage}),
    "error and usage in the choice": failed(
        200, lambda usage: {"choices": [{"error": {"code": 400}, "usage": usage}]}
    ),
    "error at the top": failed(200, error),
    "bad request": failed(400, error),
    "server error": failed(500, error),
    "overloaded": failed(529, lambda usage: {"error": {"type": "overloaded_error", "usage": usage}}),
    "rate limit": failed(429, error),
    "content filter": failed(400, lambda _: {"error": {"code": "content_filter", "message": "no"}}),
    "bad gateway without usage": failed(502, lambda _: {"error": {"message": "no"}}),
    "broken stream": lambda worst, number: Exchange(
        told(worst)
        if number % 2
        else events(
            {"choices": [{"index": 0, "delta": {"content": "I"}}]}, {"choices": [], "usage": counts(worst)}
        ),
        worst,
    ),
    "no choices": failed(200, lambda usage: {"choices": "?", "usage": usage}),
    "a page": sometimes(PAGE),
    "a cut reply": sometimes(Answer(cut_after=60)),
    "no usage": hidden(None),
    "nothing for a text": hidden({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
    "no output for a text": hidden({"prompt_tokens": 9, "completion_tokens": 0}),
    "one token for a long text": hidden({"prompt_tokens": 9, "completion_tokens": 1}, "I stay in and " * 200),
    "negative": hidden({"prompt_tokens": -9, "completion_tokens": -5}),
    "strings": hidden({"prompt_tokens": "9", "completion_tokens": "5"}),
    "too large": hidden({"prompt_tokens": HUGE - 1, "completion_tokens": HUGE - 1}),
    "total too large": hidden({"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 2 * HUGE}),
    "more thoughts than tokens": hidden(
        {"prompt_tokens": 9, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 900}}
    ),
    "more cached than read": hidden(
        {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}}
    ),
}


@dataclass
class Provider:
    """Answers honestly at first, and then as it lies; knows what it charged."""

    lie: Lie
    book: GenaiPriceBook
    model: Model
    calls: int = 0
    charged: Amount = field(default_factory=Amount)
    largest: Amount = field(default_factory=Amount)
    next_call: asyncio.Event = field(default_factory=asyncio.Event)

    async def after(self, calls: int) -> None:
        """Waits until so many calls have come."""
        while self.calls < calls:
            self.next_call.clear()
            await self.next_call.wait()

    def __call__(self, seen: Seen) -> Answer:
        self.calls += 1
        self.next_call.set()
        worst = Usage(len(seen.body), seen.json()["max_tokens"])
        exchange = Exchange(told(worst), worst)
        if self.calls > HONEST:
            exchange = self.lie(worst, self.calls)
        usd = max(self.book.price(self.model, exchange.bill).usd or 0, exchange.cost)
        bill = Amount(1, exchange.bill.input_tokens + exchange.bill.output_tokens, nanos_of(usd))
        self.charged += bill
        self.largest = self.largest.at_least(bill)
        return Answer(**vars(exchange.answer) | {"delay": 0.005})


class MortalWriter(ResultWriter):
    """Writes nothing any more once its worker is dead."""

    dead = False

    async def write(self, rows: Any) -> set[Held]:
        if self.dead:
            await asyncio.Event().wait()
        return await super().write(rows)


@dataclass
class World:
    """A job with a budget, its provider and its workers."""

    engine: AsyncEngine
    stub: StubProvider
    connections: Connections
    gateway: Gateway

    async def job(self, lie: Lie, budget: Budget) -> "Spending":
        connection = self.connections.get("acme")
        assert connection is not None
        model = Model(MODEL, "acme", "m", ModelParameters(max_tokens=MOST), takes=takes_at(connection, "m"))
        book = GenaiPriceBook(self.connections)
        provider = Provider(lie, book, model)
        self.stub.script = provider
        job = await new_job(self.engine, budget=budget, iterations=60)
        return Spending(self, provider, job.id)


@dataclass
class Spending:
    world: World
    provider: Provider
    job_id: str

    async def work(self, claim: Claim, calls: int, *, dies_after: int | None = None) -> None:
        """Makes calls until the budget is used up, or until the provider has got so many and the worker dies."""
        engine = self.world.engine
        rows = MortalWriter(engine)
        writer, keeper, stop = BatchWriter(rows), BudgetKeeper(engine), StopSignal()
        caller = ModelCaller(
            chat=self.world.gateway,
            limiter=NoLimits(),
            prices=self.provider.book,
            writer=writer,
            attempts=1,
            deadline_seconds=30.0,
            in_flight=lambda *_: IN_FLIGHT,
            budgets=keeper,
            first_calls=FirstCalls(engine),
        )

        async def ask(number: int) -> None:
            key = CallKey(Stage.GENERATION, run=number, item=0)
            with contextlib.suppress(StoppedError, CallFailedError, JobMustStopError):
                await caller.call(self.provider.model, "Be.", "Speak.", key=key, claim=claim, stop=stop)

        running = asyncio.ensure_future(asyncio.gather(*map(ask, range(calls))))
        if dies_after is None:
            async with writer.running():
                await asyncio.wait_for(running, 60)
            return
        writing = asyncio.ensure_future(writer._run())
        dying = asyncio.ensure_future(self.provider.after(dies_after))
        ends: list[asyncio.Future[Any]] = [running, dying]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        rows.dead = True
        for task in (running, writing, dying):
            task.cancel()
        await asyncio.gather(running, writing, dying, return_exceptions=True)

    async def spend(self, calls: int = 80, *, dies_after: int | None = None) -> Account:
        engine = self.world.engine
        claim = await claimed(engine, self.job_id)
        if dies_after is not None:
            await self.work(claim, calls, dies_after=dies_after)
            await expire(engine, claim)
            heir = await take(engine, claim.shard_id)
            if heir is not None:
                await self.work(heir, calls)
        else:
            await self.work(claim, calls)
        async with engine.begin() as connection:
            account = await lock_account(connection, self.job_id)
        assert account is not None
        return account

    async def status(self) -> tuple[str, str | None]:
        (row,) = await execute(self.world.engine, "SELECT status, status_reason FROM jobs")
        return row.status, row.status_reason


@pytest.fixture
async def world(engine: AsyncEngine, calls_at_once: None) -> AsyncIterator[World]:
    async with StubProvider() as stub:
        connection = Connection("acme", "openai", f"{stub.url}/v1", SecretStr("a key"), prices={"m": PRICES})
        connections = Connections({"acme": connection})
        gateway = Gateway(connections)
        yield World(engine, stub, connections, gateway)
        await gateway.close()


BUDGETS = {"dollars": Budget(usd=0.6), "tokens": Budget(tokens=60_000), "calls": Budget(calls=25)}


async def assert_kept(world: World, lie: Lie, budget: Budget, *, dies: bool) -> None:
    spending = await world.job(lie, budget)
    account = await spending.spend(dies_after=HONEST + 2 * IN_FLIGHT if dies else None)
    provider = spending.provider
    limits, most, known = account.limits, provider.largest, account.spent + account.reserved
    assert provider.calls > HONEST
    for charged, limit, each in (
        (provider.charged.calls, limits.calls, 0),
        (provider.charged.tokens, limits.tokens, most.tokens),
        (provider.charged.nanos, limits.nanos, most.nanos),
    ):
        assert limit is None or charged <= limit + (IN_FLIGHT + 2) * each
    if not dies:  # the job shows whatever was charged
        assert limits.tokens is None or known.tokens >= provider.charged.tokens
        assert limits.nanos is None or known.nanos >= provider.charged.nanos


RUNS = list(product(LIES, BUDGETS, [False, True]))


class TestBudget:
    """Is exceeded by no more than the calls in flight at the first lie, and two."""

    @pytest.mark.parametrize("name", LIES)
    async def test_in_dollars(self, name: str, world: World) -> None:
        await assert_kept(world, LIES[name], BUDGETS["dollars"], dies=list(LIES).index(name) % 2 == 0)

    @pytest.mark.parametrize("name", [*LIES][::4])
    async def test_in_tokens(self, name: str, world: World) -> None:
        await assert_kept(world, LIES[name], BUDGETS["tokens"], dies=False)

    @pytest.mark.parametrize("name", [*LIES][::10])
    async def test_in_calls(self, name: str, world: World) -> None:
        await assert_kept(world, LIES[name], BUDGETS["calls"], dies=True)

    @pytest.mark.long
    @pytest.mark.parametrize(("name", "budget", "dies"), RUNS)
    async def test_of_each_kind(self, name: str, budget: str, dies: bool, world: World) -> None:
        await assert_kept(world, LIES[name], BUDGETS[budget], dies=dies)


class TestModelBeyondItsBound:
    async def test_takes_one_call_at_a_time_and_stays_within_a_budget_that_holds_the_first_lies(
        self, world: World
    ) -> None:
        await execute(
            world.engine,
            "INSERT INTO webhooks (id, tenant, url, events, secret) VALUES"
            " ('w', 'default', 'https://a.example', '{connection.bill_exceeded}', 's')",
        )
        spending = await world.job(LIES["ignores max_tokens"], Budget(usd=1.5))
        account = await spending.spend()
        messages = await execute(
            world.engine, "SELECT job_id, payload::json -> 'data' FROM webhook_deliveries"
        )
        assert [tuple(each) for each in messages] == [(spending.job_id, {"id": MODEL, "object": "model"})]
        charged = spending.provider.charged.nanos
        assert 1.5 * NANOS - spending.provider.largest.nanos < charged <= 1.5 * NANOS
        assert 1 <= account.exceeded <= IN_FLIGHT + 1
        assert await spending.status() == ("paused", "budget_exhausted")
        row = (await execute(world.engine, "SELECT model, nanos, repeats FROM exceeded_bounds"))[0]
        assert tuple(row) == (MODEL, spending.provider.largest.nanos, 0)

    async def test_pauses_the_job_after_two_larger_bills_and_again_after_one_more(self, world: World) -> None:
        grows = reported(lambda worst, number: worst._replace(output_tokens=MOST + 100 * number))
        spending = await world.job(grows, Budget(usd=50))
        account = await spending.spend()
        assert await spending.status() == ("paused", "bound_exceeded")
        assert account.exceeded <= IN_FLIGHT + 2
        assert spending.provider.calls <= HONEST + IN_FLIGHT + 2
        detail = await view_job(world.engine, TENANT, spending.job_id)
        assert detail.error is not None
        assert (detail.error.model, detail.error.code) == (MODEL, "bound_exceeded")
        assert "assay tenants reset-bounds" in (detail.error.remedy or "")

        before = spending.provider.calls
        await resume_job(control_dependencies(world.engine), TENANT, spending.job_id)
        await execute(world.engine, "UPDATE shards SET lease_expires_at = NULL")
        await spending.spend()
        assert spending.provider.calls == before + 1
        assert await spending.status() == ("paused", "bound_exceeded")

    async def test_holds_up_no_job_without_a_limit_and_no_other_tenant(self, world: World) -> None:
        await execute(
            world.engine,
            "INSERT INTO exceeded_bounds VALUES ('other', 'acme/m', 9, 9, 0), ('default', 'acme/n', 9, 9, 0)",
        )
        spending = await world.job(LIES["no usage"], Budget(calls=20))
        await spending.spend()
        assert spending.provider.calls == 20
        assert await scalar(world.engine, "SELECT count(*) FROM reservations WHERE alone") == 0

    async def test_takes_many_calls_again_after_an_operator_has_reset_it(self, world: World) -> None:
        await execute(
            world.engine,
            "INSERT INTO exceeded_bounds VALUES ('default', 'acme/m', 9, 9, 3), ('default', 'acme/n', 9, 9, 0)",
        )
        assert await reset_bounds(world.engine, TENANT, MODEL) == [MODEL]
        assert await reset_bounds(world.engine, TENANT, MODEL) == []
        assert await reset_bounds(world.engine, "other", None) == []
        assert await reset_bounds(world.engine, TENANT, None) == ["acme/n"]


class TestCostWithoutCounts:
    @pytest.mark.parametrize(
        ("changes", "cost", "recorded"),
        [
            ({}, 0, None),
            ({}, 0.05, 0.05),
            ({"trust_cost": True}, 0, 0.0),
            ({"prices": {}}, 0, 0.0),
        ],
        ids=["untrusted", "higher", "trusted", "no price"],
    )
    async def test_of_zero_counts_where_it_lowers_no_price(
        self, changes: dict[str, Any], cost: float, recorded: float | None, world: World
    ) -> None:
        told_cost = Answer.of_json({"choices": [SAID], "usage": {"cost": cost}})
        spending = await world.job(lambda worst, _: Exchange(told_cost, worst), Budget(calls=1))
        spending.provider.calls = HONEST
        acme = world.connections.get("acme")
        assert acme is not None
        spending.provider.book = GenaiPriceBook(Connections({"acme": replace(acme, **changes)}))
        await _one_call(spending, await claimed(world.engine, spending.job_id))
        assert await scalar(world.engine, "SELECT usd FROM calls") == recorded


class TestCountsOfAPrompt:
    @pytest.mark.parametrize(("tokens", "recorded"), [(1, None), (400, 400)])
    async def test_are_not_believed_if_they_are_too_few(
        self, tokens: int, recorded: int | None, world: World
    ) -> None:
        spending = await world.job(reported(lambda *_: Usage(tokens, 3)), Budget(usd=0.5))
        spending.provider.calls = HONEST
        await _one_call(spending, await claimed(world.engine, spending.job_id), "Speak of snow. " * 100)
        assert await scalar(world.engine, "SELECT input_tokens FROM calls") == recorded


class TestPriceThatDisappears:
    async def test_pauses_the_job_and_sends_nothing(self, world: World) -> None:
        spending = await world.job(LIES["no usage"], Budget(usd=0.5))
        nameless = Connections({"acme": Connection("acme", "openai", f"{world.stub.url}/v1")})
        spending.provider.book = GenaiPriceBook(nameless)
        claim = await claimed(world.engine, spending.job_id)
        assert claim.dollars
        with pytest.raises(JobMustStopError) as stopped:
            await _one_call(spending, claim)
        assert (stopped.value.code, stopped.value.model) == ("price_unknown", MODEL)
        assert spending.provider.calls == 0

    async def test_stops_no_job_without_a_limit_in_dollars(self, world: World) -> None:
        spending = await world.job(LIES["no usage"], Budget(calls=3))
        spending.provider.book = GenaiPriceBook(Connections({}))
        await spending.spend(5)
        assert spending.provider.calls == 3


async def _one_call(spending: Spending, claim: Claim, prompt: str = "Speak.") -> None:
    engine = spending.world.engine
    writer = BatchWriter(ResultWriter(engine))
    caller = ModelCaller(
        chat=spending.world.gateway,
        limiter=NoLimits(),
        prices=spending.provider.book,
        writer=writer,
        attempts=1,
        deadline_seconds=30.0,
        in_flight=lambda *_: IN_FLIGHT,
        budgets=BudgetKeeper(engine),
        first_calls=FirstCalls(engine),
    )
    key = CallKey(Stage.GENERATION, run=0, item=0)
    async with writer.running():
        await caller.call(spending.provider.model, "Be.", prompt, key=key, claim=claim, stop=StopSignal())
