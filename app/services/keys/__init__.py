"""API keys, who shows them, and what tenants may spend."""
