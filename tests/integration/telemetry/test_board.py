"""Which workers are ready, as the API reads it."""

import asyncio

import pytest
import redis.asyncio
import structlog

from app.redis_server import RedisServer
from app.telemetry import board
from app.telemetry.board import FORGOTTEN_AFTER_SECONDS, MetricsBoard


async def test_a_worker_is_ready_from_when_it_says_so_until_it_takes_it_back(redis_url: str) -> None:
    async with RedisServer(redis_url).client(5) as client:
        worker, api = MetricsBoard(client, "worker"), MetricsBoard(client, "api")
        await worker.show()
        assert await api.ready() == 0
        await worker.set_ready(is_ready=True)
        assert await api.ready() == 1
        await worker.set_ready(is_ready=False)
        await worker.show()
        assert await api.ready() == 0


async def test_it_says_so_again_to_a_redis_that_has_lost_it(redis_url: str) -> None:
    async with RedisServer(redis_url).client(5) as client:
        worker = MetricsBoard(client, "worker")
        await worker.set_ready(is_ready=True)
        await client.flushall()
        assert await worker.ready() == 0
        await worker.show()
        assert await worker.ready() == 1


async def test_a_worker_that_fell_silent_is_not_ready_and_is_removed_by_the_next(redis_url: str) -> None:
    async with RedisServer(redis_url).client(5) as client:
        silent, living = MetricsBoard(client, "worker"), MetricsBoard(client, "another")
        await silent.set_ready(is_ready=True)
        await client.zincrby("assay:ready", -FORGOTTEN_AFTER_SECONDS - 1, silent.process)
        assert await living.ready() == 0
        await living.set_ready(is_ready=True)
        assert await living.ready() == 1
        assert await client.zcard("assay:ready") == 1


async def test_a_worker_whose_redis_is_away_says_it_later(redis_url: str) -> None:
    nowhere = redis.asyncio.Redis(host="127.0.0.1", port=9)
    worker = MetricsBoard(nowhere, "worker")
    await worker.set_ready(is_ready=True)
    async with RedisServer(redis_url).client(5) as client:
        worker._redis = client
        await worker.show()
        assert await worker.ready() == 1


async def test_ending_is_not_lost_in_a_request_to_redis(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "SHOWN_EVERY_SECONDS", 0.0)
    async with RedisServer(redis_url).client(5) as client:
        for step in range(50):
            async with asyncio.timeout(20), MetricsBoard(client, "worker").showing():
                await asyncio.sleep(step * 0.0002)


async def test_metrics_that_can_not_be_read_once_are_shown_later(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter([KeyError("a gauge's own error")])

    def snapshot(_registry: object) -> str:
        for error in readings:
            raise error
        return "metrics"

    monkeypatch.setattr(board, "SHOWN_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(board, "snapshot", snapshot)
    async with RedisServer(redis_url).client(5) as client:
        worker = MetricsBoard(client, "worker")
        with structlog.testing.capture_logs() as logs:
            async with asyncio.timeout(20), worker.showing():
                while await worker.snapshots() != {worker.process: "metrics"}:  # noqa: ASYNC110 - what is waited for is in Redis
                    await asyncio.sleep(0.01)
    assert [entry["event"] for entry in logs] == ["metrics not shown; trying again"]
