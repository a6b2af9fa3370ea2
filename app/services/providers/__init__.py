"""Connections to model providers and what they offer."""
