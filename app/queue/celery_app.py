"""The Celery application: configuration only, shared by those who send and those who work."""

from celery import Celery

from app.queue import transport
from app.redis_server import RedisServer

RUN_SHARD = "assay.run_shard"
"""Payload: a shard's id."""
FINALIZE_JOB = "assay.finalize_job"
"""Payload: a job's id."""
ADVANCE_BATCH = "assay.advance_batch"
"""Payload: a batch's id."""
DELETE_BATCH_FILE = "assay.delete_batch_file"
"""Payload: the id of a file's row."""
QUEUE = "assay"
"""Messages about shards."""
BACKGROUND_QUEUE = "assay.background"
"""All other messages. Workers take from both queues in turn, so that shards don't wait behind thousands of jobs' ends."""


def make_celery(server: RedisServer) -> Celery:
    """A Celery application on a Redis database that nothing else uses.

    Messages only wake; what remains to be done is known by the database. So results are ignored, messages are
    acknowledged late, and what a dead worker held comes back to the queue soon.

    Args:
        server: Where it is; Celery verifies its TLS as our own clients do.
    """
    transport.use()
    celery = Celery("assay", broker=broker_url(server.url))
    celery.conf.update(
        broker_use_ssl=dict(server.tls) or None,
        task_default_queue=QUEUE,
        task_queues={name: {"exchange": name} for name in (QUEUE, BACKGROUND_QUEUE)},
        task_routes={
            task: {"queue": BACKGROUND_QUEUE} for task in (FINALIZE_JOB, ADVANCE_BATCH, DELETE_BATCH_FILE)
        },
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # however long Redis stays away
        broker_transport_options={
            "visibility_timeout": 300,
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            "socket_timeout": 10,
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            # Announcing to a Redis that is away fails at once; the sweeper announces again.
            "max_retries": 1,
            "interval_start": 0,
            "interval_step": 0.1,
        },
    )
    return celery


def broker_url(redis_url: str) -> str:
    """The same Redis in Kombu's spelling: it writes unix sockets differently."""
    if redis_url.startswith("unix://"):
        path, _, query = redis_url.removeprefix("unix://").partition("?")
        database = query.removeprefix("db=") or "0"
        return f"redis+socket://{path}?virtual_host={database}"
    return redis_url
