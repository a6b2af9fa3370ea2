"""The wire formats of chat requests and replies."""
