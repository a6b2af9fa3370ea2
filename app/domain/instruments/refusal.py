"""Tells refusals from responses before any judging, so that no judge scores "I'm sorry, but I can't help with that."."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TERM = re.compile(r"<(\w+)>")
_DECORATION = re.compile(r"^[\s\"'\u201c\u201d\u2018\u2019*_#>`~-]+")
_MOST_LEAD_INS = 3
"""More would let a hostile text ("sorry for a sorry for a …") be read in exponentially many ways."""
_SENTENCE_END = re.compile(r"[.!?][\"'\u201d*_]*\s+")


@dataclass(frozen=True, slots=True)
class RefusalRules:
    """How a refusal of a whole response begins.

    The paper's released code looks for single words such as "prohibited" anywhere and so drops answers in
    character. These rules read only the opening: a pattern must match where one of the first sentences begins,
    after some of the ``lead_ins`` ("I'm sorry, but", "Thank you for …, however,"). English only.

    Attributes:
        window: Characters at the beginning of a response that are read.
        sentences: Sentences at the beginning of a response at which a pattern may match.
        terms: Alternatives by name; ``<name>`` in a pattern, a lead-in or a later term stands for any of them.
        lead_ins: Regular expressions of what may precede a refusal; up to three, in any order.
        patterns: Regular expressions of the refusals themselves, in lower case with straight apostrophes.

    Raises:
        ValueError: If a pattern names an unknown term or is no regular expression.
    """

    window: int
    sentences: int
    terms: Mapping[str, tuple[str, ...]]
    lead_ins: tuple[str, ...]
    patterns: tuple[str, ...]
    _matcher: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known: dict[str, str] = {}
        for name, alternatives in self.terms.items():
            known[name] = _any_of(alternatives, known)
        lead_ins, patterns = _any_of(self.lead_ins, known), _any_of(self.patterns, known)
        object.__setattr__(
            self,
            "_matcher",
            _compile(rf"(?:{lead_ins}[\s,.;:\u2013-]*(?:(?:but|and)\s+)?){{0,{_MOST_LEAD_INS}}}{patterns}"),
        )

    def is_refusal(self, text: str) -> bool:
        """Whether the response as a whole is a refusal. An empty response is none."""
        opening = text.lstrip()[: self.window].replace("\u2019", "'").replace("\u2014", "-").lower()
        starts = [0, *(match.end() for match in _SENTENCE_END.finditer(opening))][: self.sentences]
        return any(self._matcher.match(_DECORATION.sub("", opening[start:])) for start in starts)


def _any_of(alternatives: tuple[str, ...], known: Mapping[str, str]) -> str:
    """One group of alternatives, the terms in them replaced.

    Raises:
        ValueError: If an alternative names an unknown term.
    """

    def term(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise ValueError(f"unknown term <{match[1]}> in {match.string!r}")
        return known[match[1]]

    return "(?:" + "|".join(_TERM.sub(term, alternative) for alternative in alternatives) + ")"


def _compile(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern.

    Raises:
        ValueError: If it is no regular expression.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
