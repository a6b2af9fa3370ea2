"""Decides what a provider's error means. The rules are data: ``meanings.yaml``."""

import re
from collections.abc import Collection
from datetime import date
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.ports import FailureKind

FILE = "meanings.yaml"
_MOST_WORDS = 1000
"""Characters of a message that are compared."""


class Meaning(StrEnum):
    """The meanings that a rule can give to an error; the file explains them."""

    FILTERED = "filtered"
    NO_CREDIT = "no_credit"
    NO_SYSTEM_MESSAGE = "no_system_message"
    STREAM_ONLY = "stream_only"
    NO_MODEL = "no_model"
    JOB = "job"
    ITEM = "item"
    RETRY = "retry"

    @property
    def kind(self) -> FailureKind:
        """The kind of failure for the work."""
        stops = self in {
            Meaning.NO_CREDIT,
            Meaning.NO_SYSTEM_MESSAGE,
            Meaning.STREAM_ONLY,
            Meaning.NO_MODEL,
        }
        return FailureKind.JOB if stops else FailureKind(self.value)


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.DOTALL)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error


Pattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]


class Rule(BaseModel):
    """One rule; it fits a reply that has one of the codes, one of the statuses and one of the words, where it names any."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    provider: str
    means: Meaning
    codes: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()
    words: tuple[Pattern, ...] = ()
    source: Annotated[str, Field(pattern=r"^https://")]
    checked: date | None = None

    def fits(self, status: int, codes: Collection[str], words: str) -> bool:
        """Return whether the rule applies to a reply."""
        if self.codes and self.codes.isdisjoint(codes):
            return False
        if self.statuses and status not in self.statuses:
            return False
        return not self.words or any(each.search(words) for each in self.words)


@cache
def rules() -> tuple[Rule, ...]:
    """Read the rules of the file."""
    content = yaml.safe_load(files("app.llm.replies").joinpath(FILE).read_text(encoding="utf-8"))
    return tuple(Rule.model_validate(each) for each in content["rules"])


def meaning(status: int, codes: Collection[str], words: str) -> Meaning | None:
    """Return the meaning of an error by the first rule that fits; ``None`` if no rule does.

    Args:
        status: HTTP status.
        codes: The provider's codes, numbers included.
        words: Its message.
    """
    compared = words[:_MOST_WORDS].lower()
    known = {part for code in codes for part in (code, code.partition(".")[0])}
    return next((rule.means for rule in rules() if rule.fits(status, known, compared)), None)
