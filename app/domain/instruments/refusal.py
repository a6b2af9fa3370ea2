"""Tells refusals from responses before any judging, so that no judge scores "I'm sorry, but I can't help with that."."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

_TERM = re.compile(r"<(\w+)>")
_DECORATION = re.compile(r"^[\s\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u300c\u300e*_#>`~(\[-]+")
_MOST_LEAD_INS = 3
"""More would let a hostile text ("sorry for a sorry for a …") be read in exponentially many ways."""
_SENTENCE_END = re.compile(r"[.!?][\"'\u201d*_]*\s+|[\u3002\uff01\uff1f]\s*")
_ACTION = re.compile(
    r"(?:\*[^*]{1,200}\*(?!\*)|_[^_]{1,200}_|\([^()]{1,200}\)|\[[^\[\]]{1,200}\]|\uff08[^\uff08\uff09]{1,200}\uff09)\s*(?=\S)"
)
_BRACKET = re.compile(r"[(\[{\uff08\u3010]+\s*")
_SPEECH = re.compile(
    r"[\s*_#>]*(?:\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb|\u300c[^\u300d]*\u300d"
    r"|\u300e[^\u300f]*\u300f)[\s*_]*(?=[^\s*_])"
)


@dataclass(frozen=True, slots=True)
class RefusalRules:
    """Rules that tell a refusal of a whole response by who speaks: the model or a character.

    Only the opening is read. A pattern must match where one of the first sentences begins, after some of the
    ``lead_ins`` ("I'm sorry, but", "Thank you for …, however,"). Speech in quotation marks with words around it is
    a character's. After a stage direction ("*sighs*") only ``patterns`` count, not ``ambiguous``.

    Attributes:
        window: Characters at the beginning of a response that are read.
        sentences: Sentences at the beginning of a response at which a pattern may match.
        terms: Alternatives by name; ``<name>`` in a pattern, a lead-in or a later term stands for any of them.
        lead_ins: Regular expressions that may precede a refusal; up to three, in any order.
        patterns: Refusals that only the model speaks, in lower case with straight apostrophes.
        ambiguous: Refusals that the model or a character speaks.
        in_story: Signs of a character's speech; with one of them ``ambiguous`` does not count. Case matters.
        asides: Out-of-character remarks that refuse, where the text or a bracket begins.
        signs: Plain texts, one of which every refusal has.

    Raises:
        ValueError: If a pattern names an unknown term or is no regular expression.
    """

    window: int
    sentences: int
    terms: Mapping[str, tuple[str, ...]]
    lead_ins: tuple[str, ...]
    patterns: tuple[str, ...]
    ambiguous: tuple[str, ...] = ()
    in_story: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()
    signs: tuple[str, ...] = ("",)
    _matcher: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _in_story: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _asides: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known: dict[str, str] = {}
        for name, alternatives in self.terms.items():
            known[name] = _any_of(alternatives, known)
        lead_in = rf"(?:{_any_of(self.lead_ins, known)}[\s,.;:\uff0c\u3001\u2013-]*(?:(?:but|and)\s+)?){{0,{_MOST_LEAD_INS}}}"
        compiled = {
            "_matcher": rf"{lead_in}(?:(?P<model>{_any_of(self.patterns, known)})|{_any_of(self.ambiguous, known)})",
            "_in_story": _any_of(self.in_story, known),
            "_asides": _any_of(self.asides, known),
        }
        for name, pattern in compiled.items():
            object.__setattr__(self, name, _compile(pattern))

    def is_refusal(self, text: str) -> bool:
        """Tells whether the response as a whole is a refusal. An empty response is none."""
        said = text.lstrip()[: self.window].replace("\u2019", "'").replace("\u2014", "-")
        opening = said.lower()
        for sign in self.signs:  # a loop: any() with a generator takes twice the time
            if sign in opening:
                break
        else:
            return False
        bracketed = "(" in opening or "[" in opening or "{" in opening or not opening.isascii()
        asides = [0, *(match.end() for match in _BRACKET.finditer(opening))] if bracketed else [0]
        if any(self._asides.match(_DECORATION.sub("", opening[start:])) for start in asides):
            return True
        if _SPEECH.match(opening):
            return False
        action = _ACTION.match(opening)
        first = action.end() if action else 0
        ends = islice(_SENTENCE_END.finditer(opening, first), self.sentences - 1)
        starts = [first, *(match.end() for match in ends)]
        found = [self._matcher.match(_DECORATION.sub("", opening[start:])) for start in starts]
        if any(match and match["model"] for match in found):
            return True
        return not action and any(found) and not self._in_story.search(said)


def _any_of(alternatives: tuple[str, ...], known: Mapping[str, str]) -> str:
    """Joins alternatives to one group and replaces the terms in them; no alternative matches nothing.

    Raises:
        ValueError: If an alternative names an unknown term.
    """

    def term(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise ValueError(f"unknown term <{match[1]}> in {match.string!r}")
        return known[match[1]]

    return (
        "(?!)"
        if not alternatives
        else "(?:" + "|".join(_TERM.sub(term, alternative) for alternative in alternatives) + ")"
    )


def _compile(pattern: str) -> re.Pattern[str]:
    """Compiles a pattern.

    Raises:
        ValueError: If it is no regular expression.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
