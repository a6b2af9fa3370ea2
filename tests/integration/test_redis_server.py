"""How requests to Redis end."""

import asyncio

import pytest

from app.redis_server import RedisServer

STEPS = 12
"""More than a request takes of its loop until it waits for the answer."""


async def test_a_cancellation_ends_a_request_wherever_it_meets_it(redis_url: str) -> None:
    """Python 3.11 would lose the one that meets the end of the write."""
    async with RedisServer(redis_url).client(20) as client:
        for steps in range(STEPS):
            await client.echo("connected")
            asking = asyncio.ensure_future(client.blpop(["nothing"], timeout=0.1))
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking


async def test_the_answer_to_a_cancelled_request_is_not_taken_for_that_to_the_next(redis_url: str) -> None:
    async with RedisServer(redis_url).client(20) as client:
        for steps in range(STEPS):
            await client.echo("connected")
            asking = asyncio.ensure_future(client.echo("cancelled"))
            for _ in range(steps):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait([asking])
            assert await client.echo("next") == b"next"
