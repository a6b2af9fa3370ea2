"""The worker's process: ``python -P -m workers`` takes Celery's own options.

Celery looks for an application in the working directory before anywhere else, where somebody's own `workers` and `app` may lie.
So ours is imported before Celery looks.
"""

import sys

from celery.bin.celery import main

import workers.celery_app  # noqa: F401 - see above

if __name__ == "__main__":
    sys.exit(main())
