"""`/v1/uploads`."""
