"""Batches, their calls and files."""
