"""Calls that go out in providers' batches."""
