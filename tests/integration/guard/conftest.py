from tests.integration.engine import engine

__all__ = ["engine"]
