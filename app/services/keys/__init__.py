"""API keys, authentication, and tenants' limits."""
