import os
import signal
from pathlib import Path

import pytest
import redis
from kombu.connection import Connection

from app.queue import transport
from embedded.process import StackError
from embedded.valkey import EmbeddedValkey
from tests.observe import eventually


class TestServer:
    def test_both_forms_of_its_url_lead_to_the_same_numbered_database(
        self, valkey: EmbeddedValkey, redis_url: str
    ) -> None:
        transport.use()  # Kombu keeps what a URL leads to first, for the tests that follow in this process too
        with Connection(valkey.broker_url(3)) as broker:  # type: ignore[no-untyped-call]  # Kombu has no types
            queue = broker.SimpleQueue("wake")
            queue.put("shard 1")
            queue.close()
        with redis.Redis.from_url(valkey.url(3)) as third, redis.Redis.from_url(redis_url) as first:
            assert third.llen("wake") == 1
            assert first.dbsize() == 0

    def test_each_test_finds_every_database_empty(self, valkey: EmbeddedValkey, redis_url: str) -> None:
        with redis.Redis.from_url(valkey.url(3)) as third:
            assert third.dbsize() == 0

    def test_it_listens_on_a_private_socket_only_and_forgets_nothing_under_pressure(
        self, valkey: EmbeddedValkey
    ) -> None:
        with redis.Redis.from_url(valkey.url()) as client:
            assert client.config_get("port") == {"port": "0"}
            assert client.config_get("save") == {"save": ""}
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert valkey.socket.parent.stat().st_mode & 0o777 == 0o700

    def test_a_killed_server_starts_again_empty_at_the_same_address(self, scratch: Path) -> None:
        with EmbeddedValkey(scratch / "valkey") as server, redis.Redis.from_url(server.url()) as client:
            client.set("permit", 1)
            pid = server.process.pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            assert eventually(lambda: not server.process.running)
            server.restart()
            assert client.get("permit") is None

    def test_a_second_server_on_the_directory_is_refused_with_the_holders_pid(self, scratch: Path) -> None:
        with (
            EmbeddedValkey(scratch / "valkey"),
            pytest.raises(StackError, match=rf"in use by process {os.getpid()}:"),
        ):
            EmbeddedValkey(scratch / "valkey").start()
