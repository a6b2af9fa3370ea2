"""Announcing to a real Valkey, also one that stands still or is gone."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from app.queue import sender
from app.queue.celery_app import BACKGROUND_QUEUE, QUEUE, make_celery
from app.queue.sender import CeleryQueue
from app.redis_server import RedisServer
from embedded.valkey import EmbeddedValkey


@pytest.fixture
def valkey(scratch: Path) -> Iterator[EmbeddedValkey]:
    """A Valkey of the test's own."""
    with EmbeddedValkey(scratch / "valkey") as server:
        yield server


@contextmanager
def frozen(valkey: EmbeddedValkey) -> Iterator[None]:
    pid = valkey.process.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class TestSender:
    async def test_counts_messages_about_shards_and_keeps_others_apart(self, valkey: EmbeddedValkey) -> None:
        queue = CeleryQueue(make_celery(RedisServer(valkey.url())))
        await queue.announce_shards([1, 2, 3])
        await queue.announce_finalize("job_1")
        await queue.announce_batches([1])
        assert await queue.length() == 3
        with redis.Redis.from_url(valkey.url()) as client:
            assert client.llen(BACKGROUND_QUEUE) == 2

    async def test_nobody_waits_for_a_frozen_one_and_messages_go_out_once_it_is_thawed(
        self, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sender, "TIMEOUT_SECONDS", 0.1)
        queue = CeleryQueue(make_celery(RedisServer(valkey.url())))
        await queue.announce_shards([1])
        with frozen(valkey):
            started = time.monotonic()
            await asyncio.gather(*(queue.announce_shards([shard]) for shard in range(2, 22)))
            assert await queue.length() is None
            assert time.monotonic() - started < 8  # a socket's timeout is ten seconds
        monkeypatch.setattr(sender, "TIMEOUT_SECONDS", 60)
        await queue.announce_shards([22])
        with redis.Redis.from_url(valkey.url()) as client:
            # Those that a thread had begun to send may arrive late; those that nobody had begun never do.
            assert 2 <= client.llen(QUEUE) <= 2 + sender.SENDERS

    async def test_one_that_is_gone_is_said_and_does_no_harm(
        self, valkey: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sender, "TIMEOUT_SECONDS", 60)
        queue = CeleryQueue(make_celery(RedisServer(valkey.url())))
        await queue.announce_shards([1])
        valkey.process.stop()
        await queue.announce_shards([2])
        assert await queue.length() is None
        valkey.restart()
        await queue.announce_shards([3])
        assert await queue.length() == 1
