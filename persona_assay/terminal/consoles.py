"""Output streams: data to standard output, everything else to standard error."""

import sys

from rich.console import Console
from rich.theme import Theme

PLAIN_WIDTH = 100
"""Width of output that does not go to a terminal."""

THEME = Theme({"warning": "yellow", "error": "bold red", "hint": "dim", "id": "cyan"})


def out() -> Console:
    """The console of a command's result."""
    return _console(stderr=False)


def err() -> Console:
    """The console of progress, hints and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(stderr=stderr, theme=THEME, width=width, highlight=False, markup=False)


def printable(text: str) -> str:
    """Untrusted text without control characters."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
