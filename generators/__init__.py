"""Generators of the files that git does not keep; they read docs/reference/openapi.json and the client, never the service."""
