"""Keys of other services at rest: encrypted, and bound to what they are for."""
