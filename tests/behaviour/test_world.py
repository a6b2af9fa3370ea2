"""The world itself: its clocks agree, and stand still unless a test waits."""

from datetime import datetime, timedelta

from tests.unit.importers.samples import FILES
from tests.world import World


class TestClock:
    async def test_everybody_reads_the_same_time(self, world: World) -> None:
        await world.advance(days=3)
        job = await world.submit()
        (row,) = await world.rows("SELECT now() AS now, clock_timestamp() AS clock, created_at FROM jobs")
        assert row == {"now": world.now, "clock": world.now, "created_at": world.now}
        assert datetime.fromisoformat(job["created_at"]) == world.now

    async def test_time_stands_still_while_the_service_works(self, world: World) -> None:
        await world.submit()
        begun = world.now
        for _ in range(20):
            await world.get("/v1/jobs")
        assert world.now == begun

    async def test_keys_of_redis_grow_old_too(self, world: World) -> None:
        await world.advance()
        await world.redis.set("short", "", ex=60)
        await world.redis.set("long", "", ex=7200)
        await world.advance(hours=1)
        assert await world.redis.keys("short") == []
        left = timedelta(seconds=await world.redis.ttl("long"))
        assert timedelta(minutes=59) < left <= timedelta(hours=1)

    async def test_a_file_that_another_process_reads_takes_no_time(self, world: World) -> None:
        await world.advance()
        begun = world.now
        (name, data), *_ = FILES["promptfoo"].items()
        answer = await world.http.post(
            "/v1/imports",
            content=data,
            params={"name": name, "trait": "E=high"},
            headers={"content-type": "application/octet-stream"},
        )
        assert answer.status_code == 200, answer.text
        assert world.now == begun
