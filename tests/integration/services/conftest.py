import pytest

from app.services.execution import first_calls
from tests.integration.engine import engine

__all__ = ["engine"]


@pytest.fixture
def calls_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of a model does not go alone."""
    monkeypatch.setattr(first_calls, "LEAD_SECONDS", 0.0)
