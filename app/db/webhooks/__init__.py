"""Webhooks and the outbox of their messages."""
