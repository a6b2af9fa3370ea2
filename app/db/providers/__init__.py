"""Connections that were made over the API."""
