"""What webhooks are told."""
