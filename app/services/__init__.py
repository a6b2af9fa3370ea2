"""Use cases, one a file. They know the domain, the ports and the repositories, and nothing of HTTP or Celery."""
