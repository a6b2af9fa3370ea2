"""The limiter's holds, as people read them."""

import asyncio
from datetime import UTC, datetime

from redis.asyncio import Redis
from redis.exceptions import TimeoutError as RedisTimeoutError

from app.domain.providers.model import ProviderLimits, Usage
from app.limits.holds import HOLDS_KEY, Hold, read_holds
from app.limits.redis_limiter import RedisRateLimiter
from app.llm.connections.connections import Limits
from app.ports import CallOutcome, Observation
from app.redis_server import RedisServer


class TestReadHolds:
    async def test_are_those_of_the_models_that_have_not_ended(self, redis_url: str) -> None:
        until = float(round(asyncio.get_running_loop().time() + 60))
        noted = {
            "groq/llama": f"{until:.3f} daily limit of requests used up",
            "openai/gpt": f"{until:.3f} ",
            "lab/past": f"{until - 120:.3f} minute limit of tokens used up",
            "other/model": f"{until:.3f} daily limit of requests used up",
        }
        end = datetime.fromtimestamp(until, UTC)
        async with RedisServer(redis_url).client(5) as redis:
            for model, hold in noted.items():
                await redis.hset(HOLDS_KEY, model, hold)
            found = await read_holds(redis, ["groq/llama", "openai/gpt", "lab/past", "lab/free"])
        assert found == {
            "groq/llama": Hold(end, "daily limit of requests used up"),
            "openai/gpt": Hold(end, ""),
        }

    async def test_are_none_where_redis_is_away(self) -> None:
        async with Redis(port=1, socket_connect_timeout=1) as away:
            assert await read_holds(away, ["groq/llama"]) == {}

    async def test_are_noted_by_the_limiter_when_a_reply_says_that_a_day_s_limit_is_used_up(
        self, redis_url: str
    ) -> None:
        limits = ProviderLimits(hold_seconds=3600.0, hold_reason="daily limit of requests used up")
        used_up = Observation(CallOutcome.ANSWERED, 0.1, Usage(1, 1), limits=limits)
        async with RedisServer(redis_url).client(5) as redis:
            limiter = RedisRateLimiter(redis, lambda *_: Limits())
            await limiter.begin()
            limiter.observe("groq", "llama", used_up)
            waiting = asyncio.create_task(limiter.admit("groq", "llama", Usage(1, 1)))
            async with asyncio.timeout(20):
                while not (found := await read_holds(redis, ["groq/llama"])):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await limiter.close()
        assert found["groq/llama"].reason == "daily limit of requests used up"
        assert 3500 < found["groq/llama"].until.timestamp() - asyncio.get_running_loop().time() <= 3600

    async def test_of_a_rate_limit_have_the_provider_s_words(self, redis_url: str) -> None:
        words = "HTTP 429: Your tokens of this minute are used up."
        limited = Observation(CallOutcome.RATE_LIMITED, 0.1, retry_after=60.0, reason=words)
        async with RedisServer(redis_url).client(5) as redis:
            limiters = [RedisRateLimiter(redis, lambda *_: Limits()) for _ in range(2)]
            for limiter in limiters:
                await limiter.begin()
            limiters[0].observe("lab", "llama", limited)
            waiting = [asyncio.create_task(each.admit("lab", "llama", Usage(1, 1))) for each in limiters]
            async with asyncio.timeout(20):
                while not (found := await read_holds(redis, ["lab/llama"])):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            for limiter in limiters:
                await limiter.close()
        assert found["lab/llama"].reason == words

    async def test_longer_than_the_limiter_waits_are_shown_to_their_end_and_no_longer_once_a_call_passes(
        self, redis_url: str
    ) -> None:
        limits = ProviderLimits(hold_seconds=10.0, hold_reason="daily limit", hold_ends_seconds=20_000.0)
        used_up = Observation(CallOutcome.ANSWERED, 0.1, Usage(1, 1), limits=limits)
        async with RedisServer(redis_url).client(5) as redis:
            limiters = [RedisRateLimiter(redis, lambda *_: Limits()) for _ in range(2)]
            for limiter in limiters:
                await limiter.begin()
            limiters[0].observe("groq", "llama", used_up)
            first = asyncio.create_task(limiters[0].admit("groq", "llama", Usage(1, 1)))
            async with asyncio.timeout(20):
                while not await read_holds(redis, ["groq/llama"]):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            # Another process learns of the hold, not of its end, and shortens nothing of what is shown.
            second = asyncio.create_task(limiters[1].admit("groq", "llama", Usage(1, 1)))
            await asyncio.sleep(0.5)
            (shown,) = (await read_holds(redis, ["groq/llama"])).values()
            assert shown.until.timestamp() - asyncio.get_running_loop().time() > 19_000
            async with asyncio.timeout(60):
                await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
            assert await read_holds(redis, ["groq/llama"]) == {}
            for task in (first, second):
                task.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
            for limiter in limiters:
                await limiter.close()

    async def test_that_come_while_another_answer_of_redis_is_awaited_are_told_next(
        self, redis_url: str
    ) -> None:
        limits = ProviderLimits(hold_seconds=3600.0, hold_reason="daily limit", hold_ends_seconds=3600.0)
        used_up = Observation(CallOutcome.ANSWERED, 0.1, Usage(1, 1), limits=limits)
        async with RedisServer(redis_url).client(5) as redis:
            limiter = RedisRateLimiter(redis, lambda *_: Limits(requests_per_minute=6000))
            await limiter.begin()
            evaluate, asked = redis.evalsha, 0

            async def meanwhile(*words: object, **more: object) -> object:
                nonlocal asked
                answer = await evaluate(*words, **more)  # type: ignore[arg-type]  # whatever it is
                asked += '"bucket"' in str(words)
                if asked == 1:
                    limiter.observe("groq", "llama", used_up)
                return answer

            redis.evalsha = meanwhile  # type: ignore[method-assign]
            asking = asyncio.create_task(limiter.admit("groq", "llama", Usage(1, 1)))
            async with asyncio.timeout(20):
                while not await read_holds(redis, ["groq/llama"]):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await limiter.close()

    async def test_of_which_redis_did_not_hear_are_told_again_while_calls_wait(self, redis_url: str) -> None:
        limits = ProviderLimits(hold_seconds=3600.0, hold_reason="daily limit", hold_ends_seconds=3600.0)
        used_up = Observation(CallOutcome.ANSWERED, 0.1, Usage(1, 1), limits=limits)
        async with RedisServer(redis_url).client(5) as redis:
            limiter = RedisRateLimiter(redis, lambda *_: Limits())
            await limiter.begin()
            evaluate, told = redis.evalsha, 0

            async def unheard(*words: object, **more: object) -> object:
                nonlocal told
                tells = '"reason"' in str(words)
                told += tells
                if tells and told == 1:
                    raise RedisTimeoutError("Timeout reading from the server")
                return await evaluate(*words, **more)  # type: ignore[arg-type]  # whatever it is

            redis.evalsha = unheard  # type: ignore[method-assign]
            limiter.observe("groq", "llama", used_up)
            asking = asyncio.create_task(limiter.admit("groq", "llama", Usage(1, 1)))
            async with asyncio.timeout(20):
                while not await read_holds(redis, ["groq/llama"]):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await limiter.close()

    async def test_are_noted_after_a_429_that_asks_for_a_long_wait(self, redis_url: str) -> None:
        async with RedisServer(redis_url).client(5) as redis:
            limiter = RedisRateLimiter(redis, lambda *_: Limits())
            limiter.observe("openai", "gpt", Observation(CallOutcome.RATE_LIMITED, 0.0, retry_after=30.0))
            async with asyncio.timeout(20):
                while not (found := await read_holds(redis, ["openai/gpt"])):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            await limiter.close()
        assert found["openai/gpt"].reason == "", "a 429 does not say which limit it is for"
