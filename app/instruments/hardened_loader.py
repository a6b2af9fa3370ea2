"""Loads the words by which a judge is told what of its prompt is data."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from pydantic import model_validator

from app.domain.judging.hardening import Hardening
from app.instruments.forms import Form, Text, require_placeholders
from app.instruments.loader import Source


class HardenedFile(Form):
    """``prompts.yaml``."""

    system: Text
    text: Text

    @model_validator(mode="after")
    def _check(self) -> "HardenedFile":
        require_placeholders(self.system, {"key"}, "system")
        require_placeholders(self.text, {"key", "text"}, "text")
        return self


@cache
def load_hardened(version: str | None = None) -> Hardening:
    """The words that come with the package, read once per process.

    Raises:
        InstrumentError: If there is no such version or its data are not valid.
    """
    return read_hardened_words(files("app.instruments"), version)


def read_hardened_words(root: Traversable, version: str | None) -> Hardening:
    """Reads and checks the words.

    Args:
        root: The directory that holds ``hardened/<version>/``.
        version: Name of one of the directories in ``hardened``; ``None`` for the latest.

    Raises:
        InstrumentError: If there is no such version, or the file is missing or not valid.
    """
    source = Source(root, "hardened", version)
    words = source.read("prompts.yaml", HardenedFile)
    return Hardening(source.version, source.content_hash(), words.system, words.text)
