"""API keys and tenants' limits."""
