"""How often a key may ask."""

import asyncio

import pytest
from redis.asyncio import Redis

from app.limits import request_rates
from app.limits.request_rates import RequestRates


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine, Redis is waited for: what is tested is what it says."""
    monkeypatch.setattr(request_rates, "TIMEOUT_SECONDS", 60.0)


async def asked(rates: RequestRates, times: int) -> list[float]:
    """What a key is told that asks so often, twenty times at once."""
    waits: list[float] = []
    while len(waits) < times:
        waits += await asyncio.gather(*(rates.wait_for("key_1", 600) for _ in range(20)))
    return waits


@pytest.mark.usefixtures("patient")
class TestRates:
    async def test_a_tenth_of_a_minutes_requests_may_come_at_once(self, redis_url: str) -> None:
        async with Redis.from_url(redis_url) as redis:
            # 600 a minute: 60 at once, then 540 in 60 s, nine a second; asking may itself take a moment.
            rates, begun = RequestRates(redis), asyncio.get_running_loop().time()
            waits = await asked(rates, 200)
            assert 60 <= waits.count(0.0) <= 61 + 9 * (asyncio.get_running_loop().time() - begun)

    async def test_processes_share_them_and_keys_do_not(self, redis_url: str) -> None:
        async with Redis.from_url(redis_url) as redis:
            one, other = RequestRates(redis), RequestRates(redis)
            assert await one.wait_for("key_1", 1) == 0.0
            assert 0 < await other.wait_for("key_1", 1) <= 60
            assert await other.wait_for("key_2", 1) == 0.0

    async def test_who_comes_again_when_he_was_told_to_is_let_in(self, redis_url: str) -> None:
        async with Redis.from_url(redis_url) as redis:
            rates = RequestRates(redis)
            await asyncio.sleep(max(await asked(rates, 100)))
            assert await rates.wait_for("key_1", 600) == 0.0


async def test_without_redis_all_are_let_in_and_one_waits_for_it() -> None:
    async with Redis.from_url("redis://127.0.0.1:9") as redis:
        rates = RequestRates(redis)
        assert [await rates.wait_for("key_1", 1) for _ in range(10)] == [0.0] * 10
