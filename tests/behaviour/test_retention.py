"""What is removed after days, and what keeps it."""

from typing import Any

import pytest

from tests.api.service import Json
from tests.world import World

TABLES = ("jobs", "cells", "shards", "responses", "verdicts", "calls", "shard_usage", "job_results")


async def ended(world: World, **changes: Any) -> Json:
    await world.submit(**changes)
    return await world.run()


async def jobs(world: World) -> list[str]:
    return [job["id"] for job in (await world.get("/v1/jobs"))["data"]]


async def rows(world: World) -> dict[str, int]:
    return {table: (await world.rows(f"SELECT count(*) FROM {table}"))[0]["count"] for table in TABLES}


class TestJobs:
    async def test_one_is_removed_whole_after_its_days_and_younger_ones_stay(self, world: World) -> None:
        world.configure(keep_days=30)
        await ended(world)
        of_one = await rows(world)
        assert min(of_one.values()) > 0
        await world.advance(days=15)
        young = await ended(world)
        await world.advance(days=14.9)
        assert len(await jobs(world)) == 2
        await world.advance(days=0.2)
        assert await jobs(world) == [young["id"]]
        assert await rows(world) == of_one
        await world.advance(days=15)
        assert await rows(world) == dict.fromkeys(TABLES, 0)

    async def test_all_stay_unless_the_operator_says_for_how_long(self, world: World) -> None:
        job = await ended(world)
        await world.advance(days=3650)
        assert await jobs(world) == [job["id"]]

    async def test_one_that_has_not_ended_stays_however_old_it_is(self, world: World) -> None:
        world.configure(keep_days=1)
        job = await world.submit(budget={"calls": 1})
        assert (await world.run())["status"] == "paused"
        await world.advance(days=365)
        assert await jobs(world) == [job["id"]]

    async def test_one_stays_as_long_as_it_is_a_baseline(self, world: World) -> None:
        world.configure(keep_days=2)
        job = await ended(world)
        await world.http.put("/v1/baselines/r1", json={"job": job["id"], "model": "acme/writer"})
        await world.advance(days=3)
        assert await jobs(world) == [job["id"]]
        await world.http.delete("/v1/baselines/r1")
        await world.advance(minutes=5)
        assert await jobs(world) == []

    @pytest.mark.parametrize("uses", ["anchors", "responses"])
    async def test_one_stays_as_long_as_a_schedule_judges_its_texts(self, world: World, uses: str) -> None:
        world.configure(keep_days=2)
        job = await ended(world, iterations=12)
        texts = {"job": job["id"]}
        watched = {"responses": texts} if uses == "responses" else job["spec"]
        anchors = {"anchors": texts | {"sample": {"responses": 10}}} if uses == "anchors" else {}
        body = {"cron": "0 3 * * *", "job": watched | {"judges": ["acme/judge"]}}
        schedule = await world.post("/v1/schedules", body | anchors)
        await world.patch(f"/v1/schedules/{schedule['id']}", {"paused": True})
        await world.advance(days=3)
        assert await jobs(world) == [job["id"]]
        await world.http.delete(f"/v1/schedules/{schedule['id']}")
        await world.advance(minutes=5)
        assert await jobs(world) == []

    async def test_one_that_cannot_be_removed_keeps_no_other_from_it(self, world: World) -> None:
        world.configure(keep_days=2)
        stuck, _ = await ended(world), await ended(world)
        await world.rows("CREATE TABLE held AS SELECT id FROM jobs ORDER BY id LIMIT 1")
        await world.rows("ALTER TABLE held ADD FOREIGN KEY (id) REFERENCES jobs")
        await world.advance(days=3)
        assert await jobs(world) == [stuck["id"]]
        assert (await rows(world))["verdicts"] > 0


async def test_an_idempotency_key_counts_for_a_day(world: World) -> None:
    again = {"idempotency-key": "k1"}
    first = await world.submit(headers=again)
    await world.advance(hours=23)
    assert (await world.submit(headers=again))["id"] == first["id"]
    await world.advance(hours=2)
    assert (await world.submit(headers=again))["id"] != first["id"]
    await world.advance(hours=25)
    assert await world.rows("SELECT key FROM idempotency_keys") == []
