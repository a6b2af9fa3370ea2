"""Asks a worker whether it is alive: ``celery -A workers.probe:app inspect ping``.

The worker's own application would import all that shards need; this one only knows where Redis is, and verifies it as the worker does.
"""

from app.bootstrap import told_start
from app.queue.celery_app import make_celery
from app.settings import load_settings

with told_start():
    app = make_celery(load_settings().require_redis())
