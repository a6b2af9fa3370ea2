"""What is reserved for a call covers what its provider bills, whatever of ``extra`` goes with it.

The provider here bills as dearly as any could: a token for each byte that reaches it, the longest answer, and all thoughts
that it was allowed beside that.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.domain.jobs.budget import NANOS, Budget
from app.domain.providers.model import ChatRequest, ConnectionKind, Model, ModelParameters, Stage, Usage
from app.domain.providers.parameters import DEFAULT_OUTPUT_BOUND
from app.llm.batches.gateway import BatchGateway
from app.llm.connections.connections import Connection, Connections, ModelPrices
from app.llm.gateway import Gateway
from app.llm.models.prices import GenaiPriceBook
from app.llm.models.table import takes_at
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.call_rows import CallKey, worst_case
from app.services.execution.first_calls import FirstCalls
from app.services.execution.model_caller import ModelCaller
from app.services.execution.result_writer import BatchWriter
from app.services.execution.stop_signal import StoppedError, StopSignal
from tests.integration.jobs import claimed, execute, new_job
from tests.integration.llm.conftest import ANTHROPIC_REPLY, OPENAI_REPLY, stub
from tests.integration.llm.stub_provider import Answer, Seen, StubProvider
from tests.integration.no_limits import NoLimits
from tests.integration.services.keys.test_spending_caps import new_key, taken
from tests.unit.domain.providers.test_extra import ALLOWED

__all__ = ["stub"]

KINDS: tuple[ConnectionKind, ...] = ("openai", "anthropic", "completions")
MOST = 3000
"""``max_tokens`` of all calls."""
WORDS = ("Speak.", 'Zoë said: "派对?"\n\\' * 50, "")
TOOLS: dict[str, Any] = {"tools": [{"text": "x" * 1_000_000}], "service_tier": "priority"}


def connections_of(stub: StubProvider) -> Connections:
    """One of each wire format, with prices of $2.50 and $10 per million tokens, whose operator allows tools and tiers."""
    prices = {"m": ModelPrices(input=2.5, output=10)}
    return Connections(
        {
            kind: Connection(
                kind,
                kind,
                stub.url if kind == "anthropic" else f"{stub.url}/v1",
                SecretStr("a key"),
                prices=prices,
                allow_extra=tuple(TOOLS),
            )
            for kind in KINDS
        }
    )


def model_of(connections: Connections, kind: str, extra: dict[str, Any], family: str | None = None) -> Model:
    connection = connections.get(kind)
    assert connection is not None
    return Model(
        "m", kind, "m", ModelParameters(max_tokens=MOST, extra=extra), takes=takes_at(connection, "m", family)
    )


def billed(kind: str, body: bytes) -> Usage:
    """The tokens of a call by which this body came."""
    sent = json.loads(body)
    thoughts = sent.get("thinking_budget", 0) + sent.get("reasoning", {}).get("max_tokens", 0)
    if kind == "openai":
        thoughts += sent.get("thinking", {}).get("budget_tokens", 0)
    stored = len(body) if "cache_control" in sent else 0
    returned = sent.get("max_tokens", DEFAULT_OUTPUT_BOUND)  # by another name it is not heeded
    return Usage(len(body), returned + thoughts, written_input_tokens=stored)


@pytest.fixture
async def connections(stub: StubProvider) -> Connections:
    """Those of the provider, which answers, and bills what it may."""

    def answer(seen: Seen) -> Answer:
        kind = "anthropic" if "/messages" in seen.line else "openai"
        usage = billed(kind, seen.body)
        if kind == "anthropic":
            stored = usage.written_input_tokens
            counts = {"input_tokens": usage.input_tokens - stored, "cache_creation_input_tokens": stored}
            return Answer.of_json(
                ANTHROPIC_REPLY | {"usage": counts | {"output_tokens": usage.output_tokens}}
            )
        counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        choices = [{**OPENAI_REPLY["choices"][0], "text": "I love parties."}]  # for both formats of OpenAI's
        return Answer.of_json(OPENAI_REPLY | {"choices": choices, "usage": counts})

    stub.script = answer
    return connections_of(stub)


@pytest.fixture
async def gateway(connections: Connections) -> AsyncIterator[Gateway]:
    built = Gateway(connections)
    yield built
    await built.close()


FIELDS = [(kind, name) for kind in KINDS for name in ALLOWED[kind]]


class TestReserved:
    @pytest.mark.parametrize(("kind", "name"), [*FIELDS, *((kind, "") for kind in KINDS)])
    async def test_is_what_a_call_with_a_field_is_billed_or_more(
        self, kind: str, name: str, stub: StubProvider, connections: Connections, gateway: Gateway
    ) -> None:
        model = model_of(connections, kind, {name: ALLOWED[kind][name]} if name else {})
        book = GenaiPriceBook(connections)
        for system in (None, *WORDS):
            for user in WORDS:
                request = ChatRequest(model, system, user, "id")
                await gateway.prepare(kind, "default")
                reserved = worst_case(book, request, gateway.body_bytes(request))
                bill = (await gateway.complete(request)).usage
                assert bill == billed(kind, stub.seen[-1].body)
                assert not name or name in stub.seen[-1].json()
                cost = book.price(model, bill).usd
                assert cost
                assert reserved.nanos >= cost * NANOS
                assert reserved.tokens >= bill.input_tokens + bill.output_tokens

    async def test_is_what_is_billed_by_a_provider_that_does_not_know_the_family_that_a_job_names(
        self, stub: StubProvider, connections: Connections, gateway: Gateway
    ) -> None:
        model = model_of(connections, "openai", {}, family="o3")
        book, request = GenaiPriceBook(connections), ChatRequest(model, None, "Speak.", "id")
        await gateway.prepare("openai", "default")
        reserved = worst_case(book, request, gateway.body_bytes(request))
        bill = (await gateway.complete(request)).usage
        assert "max_tokens" not in stub.seen[-1].json()
        assert bill is not None
        assert reserved.tokens >= bill.input_tokens + bill.output_tokens > DEFAULT_OUTPUT_BOUND
        assert reserved.nanos >= (book.price(model, bill).usd or 0) * NANOS > 0

    @pytest.mark.parametrize(("kind", "name"), [field for field in FIELDS if field[0] != "completions"])
    async def test_is_what_a_call_in_a_batch_is_billed_or_more(
        self, kind: str, name: str, connections: Connections
    ) -> None:
        batches, book = BatchGateway(connections), GenaiPriceBook(connections)
        await batches.prepare(kind, "default")
        for user in WORDS:
            request = ChatRequest(model_of(connections, kind, {name: ALLOWED[kind][name]}), "Be.", user, "id")
            body = batches.encode(request).encode()
            cost = book.price(request.model, billed(kind, body), batched=True).usd
            assert cost
            assert worst_case(book, request, len(body), batched=True).nanos >= cost * NANOS
        await batches.close()


class Caller:
    """A worker's calls for a job with a budget of $0.40, submitted with a key that may spend $0.50."""

    def __init__(
        self, engine: AsyncEngine, writer: BatchWriter, gateway: Gateway, book: GenaiPriceBook
    ) -> None:
        self.engine = engine
        self.caller = ModelCaller(
            chat=gateway,
            limiter=NoLimits(),
            prices=book,
            writer=writer,
            attempts=1,
            deadline_seconds=60.0,
            in_flight=lambda *_: 8,
            budgets=BudgetKeeper(engine),
            first_calls=FirstCalls(engine),
        )

    async def spend(self, model: Model, calls: int) -> str:
        """The key with which a job was submitted that asks for so many calls, all at once."""
        key = await new_key(self.engine, 0.5)
        job = await new_job(self.engine, capped_key=key, budget=Budget(usd=0.4))
        claim, stop = await claimed(self.engine, job.id), StopSignal()

        async def ask(number: int) -> None:
            with contextlib.suppress(StoppedError):
                at = CallKey(Stage.GENERATION, run=number, item=0)
                await self.caller.call(model, "Be.", "Speak.", key=at, claim=claim, stop=stop)

        await asyncio.wait_for(asyncio.gather(*map(ask, range(calls))), 120)
        return key


@pytest.fixture
async def caller(engine: AsyncEngine, gateway: Gateway, connections: Connections) -> AsyncIterator[Caller]:
    writer = BatchWriter(ResultWriter(engine))
    async with writer.running():
        yield Caller(engine, writer, gateway, GenaiPriceBook(connections))


def bill(stub: StubProvider, connections: Connections, model: Model) -> float:
    book = GenaiPriceBook(connections)
    costs = [book.price(model, billed(model.connection, seen.body)).usd or 0 for seen in stub.seen]
    return sum(costs)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
class TestSpending:
    async def test_of_a_stored_job_with_a_megabyte_of_tools_stays_within_its_budget_and_sends_none(
        self, kind: str, caller: Caller, stub: StubProvider, connections: Connections
    ) -> None:
        """One such job, accepted without a list of allowed fields, spent $72.59."""
        model = Model("m", kind, "m", ModelParameters(max_tokens=MOST, extra=TOOLS | {"top_k": 5}))
        key = await caller.spend(model, 30)
        assert 0 < bill(stub, connections, model) <= 0.4
        for seen in stub.seen:
            assert {"tools", "service_tier"}.isdisjoint(seen.json())
            assert seen.json()["top_k"] == 5
        assert await taken(caller.engine, key) <= 0.4

    async def test_of_a_job_that_may_send_them_stays_within_its_budget(
        self, kind: str, caller: Caller, stub: StubProvider, connections: Connections
    ) -> None:
        model = model_of(connections, kind, {"tools": [{"text": "x" * 20_000}], "service_tier": "priority"})
        key = await caller.spend(model, 30)
        assert all("tools" in seen.json() for seen in stub.seen)
        assert 0.3 < bill(stub, connections, model) <= 0.4
        assert await taken(caller.engine, key) <= 0.4

    async def test_of_a_call_that_is_larger_than_the_budget_is_nothing(
        self, kind: str, caller: Caller, stub: StubProvider, connections: Connections
    ) -> None:
        await caller.spend(model_of(connections, kind, TOOLS), 3)
        assert not stub.seen
        assert [row.status for row in await execute(caller.engine, "SELECT status FROM jobs")] == ["paused"]
