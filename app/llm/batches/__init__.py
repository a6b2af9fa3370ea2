"""Providers' batch endpoints."""
