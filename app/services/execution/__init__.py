"""The work on a job: calls to models with permits, retries and accounting, and what each kind of shard does."""
