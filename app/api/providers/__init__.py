"""`/v1/connections` and `/v1/models`."""
