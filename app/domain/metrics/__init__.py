"""One metric a file: pure functions from one judge's scores of one cell to a value with its n."""
