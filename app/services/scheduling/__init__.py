"""Scheduling: which shard runs next, and finding lost work."""
