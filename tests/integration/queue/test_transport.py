"""Kombu's connection to a real Valkey that restarts while tasks are not acknowledged yet."""

import logging
from pathlib import Path

from app.queue.celery_app import QUEUE, make_celery
from app.redis_server import RedisServer
from embedded.valkey import EmbeddedValkey


def test_tasks_that_end_after_their_connection_was_given_up_are_no_error_that_ends_a_worker(
    scratch: Path,
) -> None:
    log = logging.getLogger("test")
    with EmbeddedValkey(scratch / "valkey") as valkey:
        connection = make_celery(RedisServer(valkey.url())).connection_for_write()
        lost = connection.connection_errors
        channels = [connection.channel() for _ in range(3)]  # Celery has several, too
        queues = [connection.SimpleQueue(QUEUE, channel=channel) for channel in channels]
        for number, queue in enumerate(queues):
            queue.put(number)
        messages = [queue.get(timeout=20) for queue in queues]
        valkey.process.stop()
        connection.collect()  # as Celery does when it notices; the first channel that can't be closed ends it
        for message in messages:
            connection.maybe_close_channel(message.channel)
            message.ack_log_error(log, lost)
            message.reject_log_error(log, lost)
            assert not message.acknowledged
            message.channel.do_restore = False  # or Kombu would try to at the interpreter's end
        valkey.restart()
        with make_celery(RedisServer(valkey.url())).connection_for_write() as again:
            other = again.SimpleQueue(QUEUE)
            other.put("another shard")
            assert other.get(timeout=20).payload == "another shard"
            other.close()
