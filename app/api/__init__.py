"""The HTTP API: routers, schemas, problem details. What a request does is in ``app.services``."""
