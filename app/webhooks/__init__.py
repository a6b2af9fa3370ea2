"""How messages reach webhooks: over HTTPS, and nowhere that the operator would not want them to go."""
