"""How long an event loop stands still while one tenant's largest inputs are worked on."""
