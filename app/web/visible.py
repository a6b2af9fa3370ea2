"""Texts from outside as a page or a figure can show them."""

import re
from unicodedata import bidirectional

_STRONG = frozenset(("L", "R", "AL"))
_LETTERS = {"ja": "\u3041-\u30ff", "ko": "\u1100-\u11ff\uac00-\ud7a3", "zh": "\u3400-\u9fff"}
_OF_LANGUAGE = {tag: re.compile(f"[{letters}]") for tag, letters in _LETTERS.items()}
_WIDE = re.compile(f"[{''.join(_LETTERS.values())}]")
_SHARE = 5
"""A text is of such a language if one letter in so many is: a word of it has one or two letters, an English one four or five."""
_CONTROL = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {0x7F: 0x2421}
_CONTROL |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
_CONTROL |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFFFE, 0xFFFF), 0xFFFD)
"""Control characters, bidirectional overrides and what XML forbids, each with the visible character that replaces it."""


def direction(text: str) -> str:
    """``"rtl"`` if the first letter that has a direction is written from right to left, else ``"ltr"``.

    A browser finds it itself (``dir="auto"``), but not from what stands in elements of its own, such as marked sentences.
    """
    strong = (bidirectional(char) for char in text)
    return "rtl" if next((kind for kind in strong if kind in _STRONG), "L") != "L" else "ltr"


def language(text: str) -> str:
    """``"ja"``, ``"ko"`` or ``"zh"`` where a text's letters say so, by which a browser chooses their forms; else empty, as no other can be told by them."""
    wide = len(_WIDE.findall(text))
    if not wide or wide * _SHARE < sum(map(str.isalpha, text)):
        return ""
    return next(tag for tag, letters in _OF_LANGUAGE.items() if letters.search(text) is not None)


def visible(text: str) -> str:
    """Text with a picture in place of every control character."""
    return text.translate(_CONTROL)
