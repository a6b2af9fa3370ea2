"""Loads the texts of the follow-up request to a judge whose reply could not be read."""

from functools import cache
from importlib.resources import files

from pydantic import model_validator

from app.domain.judging.repair import Repair
from app.instruments.forms import Form, Text, placeholders
from app.instruments.loader import Source


class RepairFile(Form):
    """``prompts.yaml``."""

    score: Text
    grade: Text
    empty_reply: Text

    @model_validator(mode="after")
    def _check(self) -> "RepairFile":
        for words in (self.score, self.grade):
            if placeholders(words) != {"numbers"}:
                raise ValueError("score and grade must contain exactly the placeholder numbers")
        return self


@cache
def load_repair(version: str | None = None) -> Repair:
    """Return the texts that come with the package, read once per process.

    Raises:
        InstrumentError: If the version does not exist or its data are not valid.
    """
    source = Source(files("app.instruments"), "repair", version)
    words = source.read("prompts.yaml", RepairFile)
    return Repair(source.version, source.content_hash(), words.score, words.grade, words.empty_reply)
