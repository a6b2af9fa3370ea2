"""Question sets and persona sets."""
