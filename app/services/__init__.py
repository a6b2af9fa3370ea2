"""Use cases. They depend on the domain, the ports and the repositories, not on HTTP or Celery."""
