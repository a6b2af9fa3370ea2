"""The Celery worker and the sweeper: composition roots of a few lines each; the work itself is in ``app.services``."""
