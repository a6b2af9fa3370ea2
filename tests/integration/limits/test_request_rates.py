"""How often a key may ask."""

import asyncio
import time

import pytest
from redis.asyncio import Redis

from app.limits.request_rates import RequestRates


async def let_in(rates: RequestRates, asked: int, per_minute: int) -> int:
    waits = [await rates.wait_for("key_1", per_minute) for _ in range(asked)]
    return waits.count(0.0)


async def test_a_tenth_of_a_minutes_requests_may_come_at_once(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as redis:
        # 600 a minute: 60 at once, then 540 in 60 s, nine a second; asking may itself take a moment.
        begun = time.monotonic()
        found = await let_in(RequestRates(redis), 200, 600)
        assert 60 <= found <= 61 + 9 * (time.monotonic() - begun)


async def test_who_has_asked_too_often_is_told_when_to_come_again(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as redis:
        one, other = RequestRates(redis), RequestRates(redis)
        assert await one.wait_for("key_1", 1) == 0.0
        assert 50 < await other.wait_for("key_1", 1) <= 60
        assert await other.wait_for("key_2", 1) == 0.0


async def test_who_comes_when_he_was_told_is_let_in(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as redis:
        rates = RequestRates(redis)
        while (wait := await rates.wait_for("key_1", 600)) == 0.0:
            pass
        await asyncio.sleep(wait)
        assert await rates.wait_for("key_1", 600) == 0.0


@pytest.mark.parametrize("url", ["redis://127.0.0.1:9", "redis://192.0.2.1:6379"])
async def test_without_redis_all_are_let_in_and_few_wait_for_it(url: str) -> None:
    async with Redis.from_url(url, socket_connect_timeout=3) as redis:
        rates = RequestRates(redis)
        begun = time.monotonic()
        assert await let_in(rates, 100, 1) == 100
        assert time.monotonic() - begun < 5
