"""Texts from outside as a page or a figure can show them."""

from unicodedata import bidirectional

_STRONG = frozenset(("L", "R", "AL"))
_CONTROL = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_CONTROL |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_CONTROL |= {0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
"""Characters that HTML or XML forbid or that nobody can see, and the picture that stands for each."""


def direction(text: str) -> str:
    """``"rtl"`` if the first letter that has a direction is written from right to left, else ``"ltr"``.

    A browser finds it itself (``dir="auto"``), but not from what stands in elements of its own, such as marked sentences.
    """
    strong = (bidirectional(char) for char in text)
    return "rtl" if next((kind for kind in strong if kind in _STRONG), "L") != "L" else "ltr"


def visible(text: str) -> str:
    """Text with a picture in place of every control character."""
    return text.translate(_CONTROL)
