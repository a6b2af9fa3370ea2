"""What messages say of names: the known one nearest to an unknown one, and some of many."""

import difflib
from collections.abc import Iterable, Sequence

LONGEST_NAME = 50
"""Characters of a name that is compared with known ones: the time that takes grows with the length."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that begins with an unknown one or resembles it, in any case; ``None`` without one."""
    if len(name) > LONGEST_NAME:
        return None
    names = {each.lower(): each for each in known}
    beginning = [each for each in names if name and each.startswith(name.lower())]
    close = beginning or difflib.get_close_matches(name.lower(), names, n=1)
    return names[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to append to the message about an unknown name; empty if no known one is near."""
    close = nearest(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


def some_of(names: Sequence[str], most: int) -> str:
    """The first names of a list, at most so many, and a sign if there are more."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
