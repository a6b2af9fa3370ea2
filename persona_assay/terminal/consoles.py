"""Output streams: data to standard output, everything else to standard error."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.cells import split_graphemes
from rich.console import Console
from rich.text import Text
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


def warning_lines(warnings: Iterable[Mapping[str, Any]], headline: str | None = None) -> list[Text]:
    """Lines that say why figures must not be taken at face value, each reason once; empty without any."""
    reasons = dict.fromkeys(f"! {warning.get('summary') or warning['message']}" for warning in warnings)
    lines = [Text(printable(reason), style="warning") for reason in reasons]
    return [*([Text(printable(headline), style="error")] if headline else []), *lines]


_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
_TAGGED_FLAG = re.compile("(?<=\N{WAVING BLACK FLAG})[\U000e0020-\U000e007e]+\U000e007f")
_INVISIBLE = "\N{REPLACEMENT CHARACTER}"
_CI_COMMANDS = re.compile("::|##(?=\\[|vso\\[)")
"""Openings of workflow commands, which GitHub Actions and Azure Pipelines execute from a job's output."""
_LINE_BREAKS = re.compile("[\t ]*[\n\r\v\f\x85\u2028\u2029]\\s*")


def printable(text: str) -> str:
    """Return untrusted text on one line without control characters or CI commands; emoji and joined letters stay whole."""
    text = _LINE_BREAKS.sub(" ", text)
    if "GITHUB_ACTIONS" in os.environ or "TF_BUILD" in os.environ:
        text = _CI_COMMANDS.sub(lambda opening: " ".join(opening[0]), text)
    pieces, end = [], 0
    for flag in _TAGGED_FLAG.finditer(text):
        pieces += [_plain(text[end : flag.start()]), flag[0]]
        end = flag.end()
    return "".join([*pieces, _plain(text[end:])])


def printable_lines(text: str) -> str:
    """Return untrusted text as :func:`printable` does, with its lines and tabs kept."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.splitlines())


def shortened(text: str, width: int) -> str:
    """The text in so many columns of a terminal, cut between characters as a reader sees them."""
    spans, _ = split_graphemes(text)
    if sum(columns for _, _, columns in spans) <= width:
        return text
    end, room = 0, width - 1
    for _, stop, columns in spans:
        room -= columns
        if room < 0:
            break
        end = stop
    return f"{text[:end]}…"


def _plain(text: str) -> str:
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isprintable() or char in _JOINERS:
        return char
    return " " if char.isspace() else _INVISIBLE
