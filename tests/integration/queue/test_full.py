"""A Redis whose memory is full: the processes that write to it say so."""

import asyncio
from collections.abc import Iterator

import pytest
import redis
import structlog

from app.queue.celery_app import make_celery
from app.queue.sender import CeleryQueue
from app.redis_server import RedisServer, reason
from app.telemetry import board
from app.telemetry.board import MetricsBoard
from tests.observe import eventually

FULL = "its memory is full (maxmemory)"


@pytest.fixture
def full_url(redis_url: str) -> Iterator[str]:
    """A Redis that takes nothing more."""
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory", "1")
        yield redis_url
        client.config_set("maxmemory", "0")


async def test_the_sender_says_so(full_url: str) -> None:
    with structlog.testing.capture_logs() as told:
        await CeleryQueue(make_celery(RedisServer(full_url))).announce_shards([1])
    assert [line["reason"] for line in told] == [FULL]


async def test_a_worker_says_so_once_and_again_when_it_is_over(
    full_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board, "SHOWN_EVERY_SECONDS", 0.02)
    async with RedisServer(full_url).client(5) as client:
        with structlog.testing.capture_logs() as told:
            async with MetricsBoard(client, "worker").showing():
                assert await asyncio.to_thread(eventually, lambda: len(told) == 1)
                await client.config_set("maxmemory", "0")
                assert await asyncio.to_thread(eventually, lambda: len(told) == 2)
    assert [(line["part"], line["state"]) for line in told] == [("redis", FULL), ("redis", "ok")]


def test_what_nobody_foresaw_shows_nothing_of_the_error() -> None:
    assert reason(RuntimeError("redis://:hunter2@host")) == "it can't be reached"
