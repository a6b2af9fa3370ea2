"""How messages reach webhooks: over HTTP, to where the guard lets them."""
