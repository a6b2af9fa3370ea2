"""Loads the texts of the follow-up request to a judge whose reply could not be read."""

from functools import cache
from importlib.resources import files

from pydantic import model_validator

from app.domain.judging.repair import Repair
from app.instruments.forms import Form, Text, require_placeholders
from app.instruments.loader import Source

_PLACEHOLDERS = {
    "score": {"numbers"},
    "grade": {"numbers"},
    "sentences": {"numbers", "lines"},
    "key": {"key"},
    "empty_reply": set[str](),
}


class RepairFile(Form):
    """``prompts.yaml``."""

    score: Text
    grade: Text
    sentences: Text
    key: Text
    empty_reply: Text

    @model_validator(mode="after")
    def _check(self) -> "RepairFile":
        for name, needed in _PLACEHOLDERS.items():
            require_placeholders(getattr(self, name), needed, name)
        return self


@cache
def load_repair(version: str | None = None) -> Repair:
    """Return the texts that come with the package, read once per process.

    Raises:
        InstrumentError: If the version does not exist or its data are not valid.
    """
    source = Source(files("app.instruments"), "repair", version)
    words = source.read("prompts.yaml", RepairFile)
    return Repair(source.version, source.content_hash(), **words.model_dump())
