import pickle
from functools import cache

import pytest

from app.reports import html
from app.reports.figures.plot import Plot, inline_svg


@pytest.fixture
def _drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws a figure once for all pages that have it with the same data: drawing is most of what a page takes."""
    monkeypatch.setattr(html, "inline_svg", lambda figure: _drawn(pickle.dumps(figure)))


@cache
def _drawn(pickled: bytes) -> str:
    figure: Plot = pickle.loads(pickled)
    return inline_svg(figure)
