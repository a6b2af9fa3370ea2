import math
import pickle
from functools import cache

import pytest

from app.reports import html
from app.reports.figures import plot
from app.reports.figures.plot import Plot, inline_svg


@pytest.fixture(autouse=True)
def _rendered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts no process for a page: that takes two seconds, and that its bytes are the same has a test of its own."""
    monkeypatch.setattr(html, "APART_CHARACTERS", math.inf)


@pytest.fixture
def _drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws a figure once for all pages that have it with the same data: drawing is most of what a page takes."""
    monkeypatch.setattr(plot, "inline_svg", lambda figure: _drawn(pickle.dumps(figure)))


@cache
def _drawn(pickled: bytes) -> str:
    figure: Plot = pickle.loads(pickled)
    return inline_svg(figure)
