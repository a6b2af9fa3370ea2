"""Shards, calls and the rows that they write."""
