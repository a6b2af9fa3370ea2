"""Loads the question to a judge whether a text is a refusal."""

from functools import cache
from importlib.resources import files

from pydantic import model_validator

from app.domain.judging.refusal_check import RefusalCheck
from app.instruments.forms import Form, Text, require_placeholders
from app.instruments.loader import Source


class RefusalCheckFile(Form):
    """``prompts.yaml``."""

    question: Text

    @model_validator(mode="after")
    def _check(self) -> "RefusalCheckFile":
        of_v1 = "{request}" not in self.question
        require_placeholders(self.question, {"text"} if of_v1 else {"request", "text"}, "question")
        return self


@cache
def load_refusal_check(version: str | None = None) -> RefusalCheck:
    """Return the question that comes with the package, read once per process.

    Raises:
        InstrumentError: If the version does not exist or its data are not valid.
    """
    source = Source(files("app.instruments"), "refusal_check", version)
    words = source.read("prompts.yaml", RefusalCheckFile)
    return RefusalCheck(source.version, source.content_hash(), words.question)
