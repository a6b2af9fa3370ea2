"""One limit for everybody, on a real Valkey."""

import asyncio
import multiprocessing
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from unittest import mock

import pytest
from redis.asyncio import Redis

from app.domain.providers.model import ProviderLimits, Usage
from app.limits import shared_rates, shared_slots
from app.limits.redis_limiter import RedisRateLimiter
from app.limits.shared_rates import SharedRates, _Waiter
from app.limits.timeline import MINUTE_SECONDS, Cost, Lease
from app.ports import CallOutcome, LimiterUnavailableError, Observation
from app.redis_server import RedisServer
from app.telemetry.metrics import REGISTRY
from embedded.valkey import EmbeddedValkey
from tests.virtual_time import VirtualTimeLoop

SLACK = 0.25
"""A slot is used at most this late, so a burst is at most this many seconds' worth."""
CALL_SECONDS = 0.001


@dataclass(frozen=True)
class Rates:
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_in_flight: int | None = None


LONG_AGO = {"assay:limit:epoch": 1}
"""An epoch in which everything leased before it is over, as an installation has from its first second on."""


@asynccontextmanager
async def limiters(
    url: str, rates: Rates, count: int = 1, *, epoch: Mapping[str, int] = LONG_AGO
) -> AsyncIterator[list[RedisRateLimiter]]:
    """Limiters of as many workers, each with its own connections, to which many calls may be in flight from the first."""
    async with AsyncExitStack() as stack:
        stack.enter_context(mock.patch.object(shared_slots, "START", 512))
        if epoch:
            async with Redis.from_url(url) as redis:
                await redis.mset(dict(epoch))
        made = []
        for _ in range(count):
            redis = await stack.enter_async_context(RedisServer(url).client(5))
            made.append(RedisRateLimiter(redis, lambda _connection, _model: rates))
            stack.push_async_callback(made[-1].close)
        yield made


async def acquire(limiter: RedisRateLimiter, tokens: int = 0, model: str = "gpt-4o") -> None:
    slot = await limiter.admit("openai", model, Usage(tokens))
    await asyncio.sleep(CALL_SECONDS)
    limiter.observe("openai", model, Observation(CallOutcome.ANSWERED, CALL_SECONDS))
    slot.release()


def learn(limiter: RedisRateLimiter, limits: ProviderLimits) -> None:
    limiter.observe("openai", "gpt-4o", Observation(CallOutcome.ANSWERED, 0.1, limits=limits))


async def pause(limiter: RedisRateLimiter, seconds: float) -> None:
    """A call is answered with a 429; comes back when the others could know."""
    limiter.observe("openai", "gpt-4o", Observation(CallOutcome.RATE_LIMITED, 0.0, retry_after=seconds))
    await asyncio.sleep(0.02)


async def keep_calling(
    limiter: RedisRateLimiter, seconds: float, tokens: int = 0, tasks: int = 20
) -> list[float]:
    """The moments at which calls were let go, by tasks that call again and again."""
    moments: list[float] = []
    end = asyncio.get_running_loop().time() + seconds

    async def call() -> None:
        while True:
            await acquire(limiter, tokens)
            moments.append(asyncio.get_running_loop().time())

    async with asyncio.TaskGroup() as running:
        calling = [running.create_task(call()) for _ in range(tasks)]
        await asyncio.sleep(end - asyncio.get_running_loop().time())
        for task in calling:
            task.cancel()
    return moments


async def all_calls(*workers: Awaitable[list[float]]) -> list[float]:
    return list(chain(*await asyncio.gather(*workers)))


def calls_in_another_process(url: str, seconds: float) -> list[float]:
    async def run() -> list[float]:
        async with limiters(url, Rates(requests_per_minute=6000)) as [limiter]:
            return await keep_calling(limiter, seconds)

    return asyncio.run(run())


def most_in(window: float, moments: list[float]) -> int:
    """The most calls in any window of so many seconds."""
    moments = sorted(moments)
    most = first = 0
    for last, moment in enumerate(moments):
        while moment - moments[first] >= window:
            first += 1
        most = max(most, last - first + 1)
    return most


def assert_conforms(moments: list[float], per_minute: float, late: float = CALL_SECONDS) -> None:
    """No window of any length holds more than GCRA allows; at 60 s, that is the limit itself.

    A window of w seconds holds the slots of w + SLACK seconds, and slots are MINUTE_SECONDS / limit apart:
    for w = 60 it holds at most MINUTE_SECONDS / (MINUTE_SECONDS / limit) = limit calls.
    """
    for window in (0.05, 0.25, 0.5, 1.0, 1.2):
        allowed = (window + SLACK + late) * per_minute / MINUTE_SECONDS + 1
        assert most_in(window, moments) <= allowed, f"in {window} s"


class TestSharedLimit:
    async def test_is_kept_and_used_up_by_several_workers_together(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=6000), 3) as workers:
            moments = await all_calls(*(keep_calling(worker, 1.2) for worker in workers))
        assert_conforms(moments, 6000)
        assert len(moments) >= 0.75 * 1.2 * 100, "6,000 a minute are 100 a second"

    def test_is_kept_by_several_processes_together(self, redis_url: str) -> None:
        seconds, late = 3.0, 1.0  # processes have the machine's clock; a busy one notes calls late
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            moments = list(chain(*pool.starmap(calls_in_another_process, [(redis_url, seconds)] * 2)))
        assert len(moments) <= (max(moments) - min(moments) + SLACK + late) * 100
        assert len(moments) > 2

    async def test_of_tokens_is_kept(self, redis_url: str) -> None:
        # 600,000 tokens a minute are 10,000 a second: 100 calls of 100 tokens.
        async with limiters(redis_url, Rates(tokens_per_minute=600_000), 2) as workers:
            moments = await all_calls(*(keep_calling(worker, 1.2, tokens=100) for worker in workers))
        assert_conforms(moments, 6000)
        assert len(moments) >= 0.75 * 1.2 * 100

    async def test_is_the_tighter_of_requests_and_tokens(self, redis_url: str) -> None:
        # 6,000 calls a minute would do, but 50 tokens each of 120,000 a minute make 2,400 calls: 40 a second.
        async with limiters(redis_url, Rates(requests_per_minute=6000, tokens_per_minute=120_000)) as [
            worker
        ]:
            moments = await keep_calling(worker, 1.2, tokens=50)
        assert_conforms(moments, 2400)
        assert len(moments) >= 0.75 * 1.2 * 40

    @pytest.mark.parametrize("count", [1, 2, 4])
    @pytest.mark.parametrize("named", [False, True], ids=["the operator's", "named by replies"])
    async def test_of_requests_and_tokens_is_used_up_by_any_number_of_workers(
        self, named: bool, count: int, redis_url: str
    ) -> None:
        # What assay.example.yaml has: 83 calls a second, and 222 of 150 tokens.
        limits = ProviderLimits(5000, 2_000_000)
        rates = Rates() if named else Rates(5000, 2_000_000)
        async with limiters(redis_url, rates, count) as workers:
            if named:
                learn(workers[0], limits)
                await acquire(workers[0])
            moments = await all_calls(*(keep_calling(worker, 2.0, tokens=150) for worker in workers))
        assert_conforms(moments, 5000)
        assert len(moments) >= 0.8 * 2.0 * 5000 / 60

    async def test_of_one_model_does_not_hold_up_another(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=1)) as [worker]:
            for model in ("a", "b", "c"):
                await asyncio.wait_for(acquire(worker, 0, model=model), 0.5)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(acquire(worker, 0, model="a"), 0.2)

    async def test_lets_a_call_that_is_under_it_go_at_once(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=600)) as [worker]:
            for _ in range(3):
                started = asyncio.get_running_loop().time()
                await acquire(worker)
                assert asyncio.get_running_loop().time() - started < 0.05
                await asyncio.sleep(0.15)

    async def test_is_not_shortened_by_calls_that_were_given_up(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=6000)) as [worker]:
            waiting = [asyncio.create_task(acquire(worker)) for _ in range(1000)]
            await asyncio.sleep(0.05)
            for task in waiting:
                task.cancel()
            await asyncio.wait(waiting)
            moments = await keep_calling(worker, 1.0)
        assert len(moments) >= 0.7 * 100

    async def test_is_asked_for_once_for_all_that_wait(self, redis_url: str) -> None:
        async with (
            limiters(redis_url, Rates(requests_per_minute=60_000)) as [worker],
            Redis.from_url(redis_url) as redis,
        ):
            await keep_calling(worker, 1.0, tasks=200)  # until so many may be in flight
            before = (await redis.info("commandstats"))["cmdstat_evalsha"]["calls"]
            moments = await keep_calling(worker, 1.0, tasks=200)
            asked = (await redis.info("commandstats"))["cmdstat_evalsha"]["calls"] - before
        assert len(moments) > 20 * asked


class TestPause:
    @pytest.mark.parametrize(
        "rates", [Rates(), Rates(requests_per_minute=6000)], ids=["unlimited", "limited"]
    )
    async def test_holds_back_everybody(self, rates: Rates, redis_url: str) -> None:
        async with limiters(redis_url, rates, 3) as workers:
            for worker in workers:
                await acquire(worker)
            paused = asyncio.get_running_loop().time()
            await pause(workers[0], 1.3)
            await asyncio.sleep(1.0)  # others look at most a second late
            await asyncio.gather(*(acquire(worker) for worker in workers))
        assert 1.29 <= asyncio.get_running_loop().time() - paused < 4.0, "then as fast as before the 429"

    async def test_ends_with_one_call_that_is_sent(self, redis_url: str) -> None:
        """Redis rounds its end to microseconds, which may be earlier than its process thinks: in about one of 15 runs."""
        loop = asyncio.get_running_loop()
        for _ in range(60):
            async with limiters(redis_url, Rates(), 3) as workers, Redis.from_url(redis_url) as redis:
                for worker in workers:
                    await acquire(worker)
                await pause(workers[0], 1.3)
                await asyncio.sleep(1.0)
                resumed = loop.time() + 0.27
                calls = [asyncio.ensure_future(acquire(worker)) for worker in workers]
                await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                assert loop.time() - resumed < 0.1, "no other call waits for one that nobody sends"
                for call in calls:
                    call.cancel()
                await asyncio.wait(calls)
                await redis.flushdb()

    async def test_holds_back_its_own_process_at_once(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates()) as [worker]:
            await acquire(worker)
            await pause(worker, 0.3)
            started = asyncio.get_running_loop().time()
            await acquire(worker)
        assert asyncio.get_running_loop().time() - started >= 0.27

    async def test_is_never_shortened_by_a_shorter_one(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(), 2) as [worker, other]:
            started = asyncio.get_running_loop().time()
            await pause(worker, 0.5)
            await pause(other, 0.1)
            await acquire(other)
        assert asyncio.get_running_loop().time() - started >= 0.45

    async def test_holds_back_only_its_own_model(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates()) as [worker]:
            await pause(worker, 30)
            await asyncio.wait_for(acquire(worker, 0, model="gpt-4o-mini"), 0.5)

    async def test_is_told_once_however_many_calls_were_turned_down(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates()) as [worker], Redis.from_url(redis_url) as redis:
            await pause(worker, 30)
            before = (await redis.info("stats"))["total_commands_processed"]
            for _ in range(100):  # which were on the wire when the first one came back
                seen = Observation(CallOutcome.RATE_LIMITED, latency_seconds=2.0, retry_after=27)
                worker.observe("openai", "gpt-4o", seen)
            assert (await redis.info("stats"))["total_commands_processed"] - before == 1, "the info itself"


class TestLearnedLimit:
    """What a provider's replies name, for everybody."""

    async def test_holds_for_all_where_the_operator_gave_none(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(), 2) as workers:
            learn(workers[0], ProviderLimits(requests_per_minute=1200))
            await acquire(workers[0])
            moments = await all_calls(*(keep_calling(worker, 1.2) for worker in workers))
        assert_conforms(moments, 1200)

    async def test_of_tokens_holds_too(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=6000)) as [worker]:
            learn(worker, ProviderLimits(tokens_per_minute=120_000))
            moments = await keep_calling(worker, 1.0, tokens=100)
        assert_conforms(moments, 1200)

    async def test_goes_before_a_higher_one_of_the_operator(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=60_000)) as [worker]:
            learn(worker, ProviderLimits(requests_per_minute=1200))
            moments = await keep_calling(worker, 1.0)
        assert_conforms(moments, 1200)

    async def test_does_not_raise_a_lower_one_of_the_operator(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=1200)) as [worker]:
            learn(worker, ProviderLimits(requests_per_minute=60_000))
            moments = await keep_calling(worker, 1.0)
        assert_conforms(moments, 1200)

    async def test_is_the_one_named_last(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(), 2) as [worker, other]:
            learn(worker, ProviderLimits(requests_per_minute=1))
            await acquire(worker)
            learn(other, ProviderLimits(requests_per_minute=60_000))
            async with Redis.from_url(redis_url) as redis:
                await redis.hdel("assay:limit:openai/gpt-4o", "due")
            await asyncio.wait_for(acquire(other), 5)
            for _ in range(3):
                await asyncio.wait_for(acquire(worker), 5)

    async def test_is_known_again_after_redis_was_emptied(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates()) as [worker], Redis.from_url(redis_url) as redis:
            learn(worker, ProviderLimits(requests_per_minute=1200))
            await acquire(worker)
            await redis.flushall()
            moments = await keep_calling(worker, 1.0)
        assert_conforms(moments, 1200)


class TestTokensBeyondTheEstimate:
    async def test_are_made_up_for(self, redis_url: str) -> None:
        # 600,000 a minute are 10,000 a second; 10,000 spent beyond the estimate take about a second of it.
        async with limiters(redis_url, Rates(tokens_per_minute=600_000)) as [worker]:
            await acquire(worker, 100)
            took = Observation(CallOutcome.ANSWERED, 0.1, beyond=(0, 10_000))
            worker.observe("openai", "gpt-4o", took)
            await acquire(worker, 100)  # whose lease they are part of
            started = asyncio.get_running_loop().time()
            await acquire(worker, 100)
        assert asyncio.get_running_loop().time() - started > 0.5


class TestEmptiedRedis:
    @pytest.mark.parametrize("per_minute", [60, 6000])
    async def test_hands_out_nothing_that_was_handed_out_before(
        self, per_minute: int, redis_url: str
    ) -> None:
        async with (
            limiters(redis_url, Rates(requests_per_minute=per_minute), 3) as workers,
            Redis.from_url(redis_url) as redis,
        ):
            calling = asyncio.create_task(all_calls(*(keep_calling(worker, 2.4) for worker in workers)))
            for _ in range(3):
                await asyncio.sleep(0.6)
                await redis.flushall()
            moments = await calling
        assert_conforms(moments, per_minute)

    async def test_lets_calls_go_again_soon(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=6000)) as [worker]:
            async with Redis.from_url(redis_url) as redis:
                await redis.flushall()
            await asyncio.wait_for(acquire(worker), 5)

    async def test_a_new_installation_need_not_wait_for_its_first_call(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=600), epoch={}) as [worker]:
            await worker.begin()
            await asyncio.sleep(0.6)
            started = asyncio.get_running_loop().time()
            await acquire(worker)
            assert asyncio.get_running_loop().time() - started < 0.25


class TestUnlimited:
    async def test_asks_redis_once_a_second(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates()) as [worker], Redis.from_url(redis_url) as redis:
            await acquire(worker, 100)
            before = (await redis.info("stats"))["total_commands_processed"]
            for _ in range(1000):
                slot = await worker.admit("openai", "gpt-4o", Usage(100))
                slot.release()
            assert (await redis.info("stats"))["total_commands_processed"] - before == 1, "the info itself"


def stall(seconds: float) -> None:
    """Lets time pass while the event loop stands still."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.stall(seconds)


class TestBusyLoop:
    async def test_loses_slots_but_never_the_limit(self, redis_url: str) -> None:
        # A loop that stands still for 0.3 s, again and again: what lapses meanwhile is not made up for, nor sent late.
        async def stand_still() -> None:
            while True:
                stall(0.3)
                await asyncio.sleep(0.2)

        async with limiters(redis_url, Rates(requests_per_minute=6000)) as [worker]:
            busy = asyncio.create_task(stand_still())
            moments = await keep_calling(worker, 1.5)
            busy.cancel()
        assert_conforms(moments, 6000)
        assert len(moments) >= 0.1 * 1.5 * 100

    async def test_sends_no_call_whose_slot_lapsed_after_it_was_let_go(
        self, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stalls = [2 * SLACK]

        def waiter_behind_a_stall(cost: Cost) -> _Waiter:
            waiter = _Waiter(cost)
            if stalls:  # runs before the waiting call does
                waiter.passed.add_done_callback(lambda _: stall(stalls.pop()))
            return waiter

        monkeypatch.setattr(shared_rates, "_Waiter", waiter_behind_a_stall)
        before = REGISTRY.get_sample_value("assay_limiter_lapsed_slots_total") or 0
        async with limiters(redis_url, Rates(requests_per_minute=6000)) as [worker]:
            await acquire(worker)
        assert REGISTRY.get_sample_value("assay_limiter_lapsed_slots_total") == before + 1


class TestSlowRedis:
    async def test_lets_calls_go_all_the_same(self, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        ask = SharedRates._ask

        async def ask_from_afar(rates: SharedRates, costs: list[Cost]) -> Lease:
            lease = await ask(rates, costs)
            await asyncio.sleep(2 * SLACK)
            return lease

        monkeypatch.setattr(SharedRates, "_ask", ask_from_afar)
        async with limiters(redis_url, Rates(requests_per_minute=600)) as [worker], asyncio.timeout(60):
            moments = await keep_calling(worker, 8.0)
        assert len(moments) >= 5
        assert_conforms(moments, 600)


class TestWithoutRedis:
    @pytest.mark.parametrize(
        "rates", [Rates(), Rates(requests_per_minute=6000)], ids=["unlimited", "limited"]
    )
    async def test_nothing_passes_until_it_is_back(self, rates: Rates, own_valkey: EmbeddedValkey) -> None:
        async with limiters(own_valkey.url(), rates) as [worker]:
            await acquire(worker)
            own_valkey.process.stop()
            await asyncio.sleep(1.1)  # what was leased or free before is over
            attempts = [acquire(worker) for _ in range(50)]
            outcomes = await asyncio.gather(*attempts, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {LimiterUnavailableError}
            own_valkey.restart()
            await asyncio.wait_for(acquire(worker), 2)


class TestClose:
    async def test_ends_a_call_between_its_slot_and_its_moment_and_asks_nothing_afterwards(
        self, redis_url: str
    ) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=60, max_in_flight=1)) as [worker]:
            first = await worker.admit("openai", "gpt-4o", Usage())
            second = asyncio.create_task(acquire(worker))
            await asyncio.sleep(0.05)
            assert not second.done()
            first.release()  # the second has its slot, but has not run yet
            await worker.close()
            learn(worker, ProviderLimits(hold_seconds=1))
            assert isinstance(
                *(await asyncio.gather(second, return_exceptions=True)), LimiterUnavailableError
            )
            pool = worker._redis.connection_pool
            await pool.disconnect()
            await asyncio.sleep(0.05)
            assert [each for each in pool._available_connections if each.is_connected] == []
            assert pool._in_use_connections == set()

    async def test_ends_all_waiting(self, redis_url: str) -> None:
        async with limiters(redis_url, Rates(requests_per_minute=1)) as [worker]:
            waiting = [asyncio.create_task(acquire(worker)) for _ in range(3)]
            await asyncio.sleep(0.1)
            await worker.close()
            outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [
            type(None),
            LimiterUnavailableError,
            LimiterUnavailableError,
        ]
