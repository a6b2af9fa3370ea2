"""`/v1/webhooks`."""
