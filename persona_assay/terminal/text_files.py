"""Text files that commands parse."""

from pathlib import Path
from typing import TextIO

from persona_assay.terminal.outcome import CommandError

MOST_CHARACTERS = 16 * 1024 * 1024
"""Twice the request that a service takes by default. Parsed JSON can be forty times as large as its text."""


def read_file(path: str) -> str:
    """Return the text of a UTF-8 file, its line ends unchanged.

    Raises:
        CommandError: The file can't be read, is not UTF-8, or is too long.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return read_text(file, path)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror or error}") from error


def read_text(file: TextIO, name: str) -> str:
    """Return an open file's text.

    Raises:
        CommandError: It is not UTF-8, or is too long.
    """
    try:
        text = file.read(MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not UTF-8 text") from error
    if len(text) > MOST_CHARACTERS:
        raise CommandError(
            f"{name} has more than {MOST_CHARACTERS:,} characters; send long responses as an upload"
        )
    return text
