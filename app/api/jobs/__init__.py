"""`/v1/jobs`, and what jobs can name."""
