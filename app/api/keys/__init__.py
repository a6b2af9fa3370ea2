"""`/v1/api-keys`."""
