"""Which shard is worked on next, and who finds work that nobody is doing."""
