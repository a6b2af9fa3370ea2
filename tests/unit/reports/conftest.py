import math

import pytest

from app.reports import html


@pytest.fixture(autouse=True)
def _rendered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts no process for a page: that takes two seconds, and that its bytes are the same has a test of its own."""
    monkeypatch.setattr(html, "APART_CHARACTERS", math.inf)
