"""Calls through providers' batch endpoints."""
