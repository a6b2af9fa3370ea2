"""Tells refusals from responses before any judging, and counts sentences in which a response leaves its role."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.domain.instruments.segmentation import Unit

_TERM = re.compile(r"<(\w+)>")
_DECORATION = re.compile(
    r"[\s\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb\u300c\u300e*_#>`~(\[{\uff08\u3010-]*"
)
_MOST_LEAD_INS = 3
"""More would let a hostile text ("sorry for a sorry for a …") be read in exponentially many ways."""
_REMARK = 160
"""Characters that are read after the words that mark a remark as out of character."""
_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f][\"'\u201d*_]*(?:\s+|(?<=[\n\u3002\uff01\uff1f]))")
_CLOSING = r"[\s.!?;\"'\u201d*_\u3002\uff01\uff1f]*"
_ACTION = re.compile(
    r"(?:\*[^*]{1,200}\*(?!\*)|_[^_]{1,200}_|\([^()]{1,200}\)|\[[^\[\]]{1,200}\]|\uff08[^\uff08\uff09]{1,200}\uff09)\s*(?=\S)"
)
_BRACKET = r"[(\[{<\uff08\u3010]+\s*"
_BRACKETS = ("(", "[", "{", "<", "\uff08", "\u3010")
_SPEECH = (
    r"(?:\"[^\"]*\"|\u201c[^\u201d]*\u201d|\u201e[^\u201c\u201d]*[\u201c\u201d]|\u00ab[^\u00bb]*\u00bb|\u300c[^\u300d]*\u300d"
    r"|\u300e[^\u300f]*\u300f)"
)
_OPENING_SPEECH = re.compile(rf"[\s*_#>]*{_SPEECH}[\s*_]*(?=[^\s*_])")
_LATIN = re.compile("[a-z]")
_ANY_SPEECH = re.compile(_SPEECH)
_BEFORE_PREFACE = r"\W*(?:[^.!?,:\uff0c\u3002\uff01]{1,30}[!?,.:\uff0c\u3002\uff01]+\s*){0,2}"
"""Matches the words before a preface in its sentence, as ``Sure! As requested,``."""


class Refusal(StrEnum):
    """Whether a response as a whole is a refusal, as far as rules can tell."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class LanguageRules:
    """Rules for one language; regular expressions in lower case with straight apostrophes.

    Attributes:
        terms: Alternatives by name; ``<name>`` in an expression or a later term stands for any of them.
        lead_ins: What may precede a refusal; up to three, in any order.
        model: Refusals that only the model speaks.
        either: Refusals that the model or a character speaks; in ``model``, a group that matches marks one.
        likely: What the model or a character says that begins a sentence as a refusal does; the text may be one.
        whole: What declines, or may, if a text says nothing else.
        doubt: Words for the request, the role as such or the model; a text that declines with one may be a refusal.
        making: Words for what the model is asked to make or do; so may one with such a word and one of ``charged``.
        charged: Words for what is wrong with that.
        aside: What declines in an out-of-character remark.
        declining: What declines anywhere in a sentence; a refusal beside a ``disclosure``, a ``leaving`` or ``meta``.
        meta: What a character does not speak about: the role as a role, the prompt, the model's rules.
        disclosure: What a sentence has in which the model says that it is one.
        leaving: What a sentence has in which the model leaves its role.
        preface: How one of the first sentences begins that presents the text as the persona's, from outside the role.
        script: A letter of the language; unset for Latin script.
        alone: Plain texts; one of them shows a text to be in this language alone.
        named: What a sentence has in which the model names itself, its maker or its training.
        signs: Plain texts, one of which each ``disclosure`` and ``leaving`` has; none given: all are matched.
        refusal_signs: Plain texts, one of which each ``model``, ``either``, ``aside`` and ``declining`` has.
        declining_signs: Plain texts, one of which each ``declining`` has.
        meta_signs: Plain texts, one of which each ``meta`` has.
        preface_signs: Plain texts, one of which each ``preface`` has.
    """

    terms: Mapping[str, tuple[str, ...]]
    lead_ins: tuple[str, ...]
    model: tuple[str, ...]
    either: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    doubt: tuple[str, ...] = ()
    making: tuple[str, ...] = ()
    charged: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    declining: tuple[str, ...] = ()
    meta: tuple[str, ...] = ()
    disclosure: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    preface: tuple[str, ...] = ()
    script: str | None = None
    alone: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    refusal_signs: tuple[str, ...] = ("",)
    declining_signs: tuple[str, ...] = ("",)
    meta_signs: tuple[str, ...] = ("",)
    preface_signs: tuple[str, ...] = ()


class _Language:
    """The compiled rules for one language."""

    def __init__(self, rules: LanguageRules, shared: Mapping[str, str]) -> None:
        known = dict(shared)
        for name, alternatives in rules.terms.items():
            known[name] = _any_of(alternatives, known)
        lead_in = _any_of(rules.lead_ins, known)
        before = rf"(?:{lead_in}[\s,.;:\uff0c\u3001\u2013-]*(?:(?:but|and)\s+)?){{0,{_MOST_LEAD_INS}}}"
        leaving, aside = _any_of(rules.leaving, known), _any_of(rules.aside, known)
        refusal = (
            rf"(?:{_any_of(rules.model, known)}|{leaving}.{{0,{_REMARK}}}?{aside}"
            rf"|({_any_of(rules.either, known)}))"
        )
        self.script = None if rules.script is None else _Pattern(rules.script)
        self.refusal = _Pattern(before + refusal)
        self.likely = _Pattern(before + _any_of(rules.likely, known))
        self.aside = _Pattern(aside)
        self.whole = _Pattern(rf"(?:{before}{_any_of(rules.whole, known)}{_CLOSING}){{1,2}}")
        self.alone = rules.alone
        self._signs = rules.signs
        self._refusal_signs = rules.refusal_signs
        self._declining_signs, self._meta_signs = rules.declining_signs, rules.meta_signs
        self._named = [_Pattern(_loose(_any_of((each,), known))) for each in rules.named]
        self.disclosure = _Pattern(_any_of(rules.disclosure + rules.named + rules.leaving, known))
        self._preface_signs = rules.preface_signs
        self._preface = _Pattern(_BEFORE_PREFACE + _any_of(rules.preface, known))
        self._declining = _Pattern(_any_of(rules.declining, known))
        self._meta = _Pattern(_any_of(rules.meta, known))
        self._doubt = _Pattern(_any_of(rules.doubt, known))
        self._making = _Pattern(_any_of(rules.making, known))
        self._charged = _Pattern(_any_of(rules.charged, known))
        self._answered = _Pattern(known.get("answered", "(?!)"))

    def may_refuse(self, text: str) -> bool:
        """Tell whether a sentence of a text may refuse."""
        return _has_any(text, self._refusal_signs)

    def declines(self, sentence: str) -> bool:
        """Tell whether a sentence declines and speaks of the model, its rules or the role as a role."""
        if not _has_any(sentence, self._declining_signs):
            return False
        may_be_meta, may_disclose = _has_any(sentence, self._meta_signs), self.may_disclose(sentence)
        if not (may_be_meta or may_disclose) or not self._declining.search(sentence):
            return False
        is_meta = may_be_meta and self._meta.search(sentence)
        if not is_meta and not (may_disclose and self.disclosure.search(sentence)):
            return False
        return not self._answered.search(sentence)

    def may_decline(self, sentences: Iterable[str]) -> bool:
        """Tell whether one of a few sentences declines, and they may speak of what only the model does."""
        text = " ".join(sentences)
        if not _has_any(text, self._declining_signs) or not self._declining.search(text):
            return False
        if not self._doubt.search(text) and not (self._making.search(text) and self._charged.search(text)):
            return False
        return not self._answered.search(text)

    def is_preface(self, sentence: str) -> bool:
        """Tell whether a sentence presents the text as the persona's."""
        return _has_any(sentence, self._preface_signs) and self._preface.match(sentence) is not None

    def may_disclose(self, text: str) -> bool:
        """Tell whether a sentence of a text may disclose the model or leave the role.

        Patterns that begin with the same letters are searched for ten times as fast as their alternatives in one.
        """
        if not self._signs or _has_any(text, self._signs):
            return True
        for each in self._named:  # noqa: SIM110 - see _has_any
            if each.search(text):
                return True
        return False


@dataclass(frozen=True, slots=True)
class RefusalRules:
    """Rules that tell by who speaks, the model or a character, whether a response is a refusal or leaves its role.

    For a refusal only the opening is read. A pattern must match where one of the first sentences begins, after some
    lead-ins ("I'm sorry, but", "Thank you for …, however,"). Speech in quotation marks with words around it is a
    character's. After a stage direction ("*sighs*"), or with a sign of a story, only what the model alone says counts.

    Attributes:
        window: Characters at the beginning of a response that are read for a refusal.
        sentences: Sentences at the beginning of a response at which a refusal may begin.
        out_of_character: Words that mark a remark as out of character, in lower case.
        in_story: Signs of a character's speech; case matters.
        hearsay: What makes a disclosure someone else's, or no disclosure, in lower case.
        languages: The rules by language; all whose script a text has are applied.
        terms: Alternatives by name for the patterns of all languages.

    Raises:
        ValueError: If a pattern names an unknown term; when a pattern is first used, if it is no regular expression.
    """

    window: int
    sentences: int
    languages: Mapping[str, LanguageRules]
    out_of_character: tuple[str, ...] = ()
    in_story: tuple[str, ...] = ()
    hearsay: tuple[str, ...] = ()
    terms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _latin: tuple[_Language, ...] = field(init=False, repr=False, compare=False)
    _other: tuple[_Language, ...] = field(init=False, repr=False, compare=False)
    _remark: "_Pattern" = field(init=False, repr=False, compare=False)
    _marked: "_Pattern" = field(init=False, repr=False, compare=False)
    _in_story: "_Pattern" = field(init=False, repr=False, compare=False)
    _hearsay: "_Pattern" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        shared = {name: _any_of(alternatives, {}) for name, alternatives in self.terms.items()}
        languages = [_Language(rules, shared) for rules in self.languages.values()]
        marks = _any_of(self.out_of_character, {})
        compiled = {
            "_latin": tuple(each for each in languages if each.script is None),
            "_other": tuple(each for each in languages if each.script is not None),
            "_remark": _Pattern(_BRACKET + marks),
            "_marked": _Pattern(rf"\W*{marks}\s*[:\-\u2013\uff1a*]"),
            "_in_story": _Pattern(_any_of(self.in_story, {})),
            "_hearsay": _Pattern(_any_of(self.hearsay, {})),
        }
        for name, value in compiled.items():
            object.__setattr__(self, name, value)

    def is_refusal(self, text: str) -> bool:
        """Tell whether the rules find that the response as a whole is a refusal. An empty response is none."""
        return self._read(text, unsure=False) is Refusal.YES

    def read(self, text: str) -> Refusal:
        """Tell whether the response as a whole is a refusal, or whether the rules cannot tell.

        They cannot if a character may refuse, if a later sentence of the opening refuses, or if the model says in
        the opening that it is one.
        """
        return self._read(text, unsure=True)

    def breaks(self, text: str, sentences: Sequence[Unit]) -> tuple[Unit, ...]:
        """Return the sentences of a text in which the model says that it is one, leaves its role, or presents the persona's text."""
        whole = _plain(text).lower()
        known = self._languages(whole)
        first = [each for each in sentences[: self.sentences] if self._is_preface(each, known)]
        languages = [each for each in known if each.may_disclose(whole)]
        if not languages and not self._ends_of_marks(whole):
            return tuple(first)
        return tuple(
            each for each in sentences if each in first or self._breaks(_plain(each.text).lower(), languages)
        )

    def _is_preface(self, unit: Unit, languages: Iterable[_Language]) -> bool:
        sentence = _plain(unit.text).lower()
        return any(each.is_preface(sentence) for each in languages)

    def _read(self, text: str, *, unsure: bool) -> Refusal:
        said = _plain(text.lstrip()[: self.window])
        opening = said.lower()
        known = self._languages(opening)
        languages = [each for each in known if each.may_refuse(opening)]
        marks = self._ends_of_marks(opening) if languages else ()
        if any(each.aside.search(opening, end, end + _REMARK) for end in marks for each in languages):
            return Refusal.YES
        if not (languages or unsure) or _OPENING_SPEECH.match(opening):
            return Refusal.NO
        action = _ACTION.match(opening)
        start = action.end() if action else 0
        refusals = [each.refusal for each in languages]
        found, rest = _beginnings(opening, start, self.sentences, refusals)
        if not all(any(match.groups()) for match in found):
            return Refusal.YES
        own = list(self._own(opening)) if languages else []
        if ((found and not action) or self._declines(own, languages)) and not self._in_story.search(said):
            return Refusal.YES
        if unsure and (
            found
            or any(each.whole.fullmatch(_plain(text.strip()).lower()) for each in known)
            or any(each.may_decline(own) for each in languages)
            or _beginnings(opening, start, self.sentences, [each.likely for each in languages])[0]
            or _beginnings(opening, rest, self.window, refusals)[0]
            or self._breaks(opening, known)
        ):
            return Refusal.UNSURE
        return Refusal.NO

    def _languages(self, text: str) -> tuple[_Language, ...]:
        """The languages in which a text may be, by its letters."""
        for each in self._latin:
            if _has_any(text, each.alone):
                return (each,)
        if text.isascii():
            return self._latin
        latin = self._latin if _LATIN.search(text) else ()
        return (*latin, *(each for each in self._other if each.script and each.script.search(text)))

    def _ends_of_marks(self, text: str) -> list[int]:
        """Where the marks of remarks out of character end: in brackets, or "OOC:" at the start."""
        marked = self._marked.match(text)
        ends = [marked.end()] if marked else []
        if _has_any(text, _BRACKETS):
            ends += [match.end() for match in self._remark.finditer(text)]
        return ends

    def _declines(self, sentences: Iterable[str], languages: Sequence[_Language]) -> bool:
        """Tell whether the model declines anywhere in one of a few sentences."""
        return any(
            any(each.declines(own) for each in languages) and not self._hearsay.search(own)
            for own in sentences
        )

    def _own(self, opening: str) -> Iterator[str]:
        """Yield the first sentences without speech in quotation marks."""
        for begin, end, _ in _sentences(opening, 0, self.sentences):
            yield _ANY_SPEECH.sub(" ", opening[begin:end])

    def _breaks(self, sentence: str, languages: Sequence[_Language]) -> bool:
        languages = [each for each in languages if each.may_disclose(sentence)]
        if not languages and not _has_any(sentence, _BRACKETS) and not self._marked.match(sentence):
            return False
        own = _ANY_SPEECH.sub(" ", sentence)
        if self._ends_of_marks(own):
            return True
        return any(each.disclosure.search(own) for each in languages) and not self._hearsay.search(own)


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").replace("\u2014", "-")


def _has_any(text: str, signs: Iterable[str]) -> bool:
    for sign in signs:  # noqa: SIM110 - any() with a generator takes twice the time
        if sign in text:
            return True
    return False


def _beginnings(
    text: str, start: int, most: int, patterns: Sequence["_Pattern"]
) -> tuple[list[re.Match[str]], int]:
    """The matches with which sentences begin, after quotation marks and the like; and where the other sentences begin."""
    places = list(_sentences(text, start, most))
    matches = [each.match(text, begin) for begin, _, _ in places for each in patterns]
    return [match for match in matches if match], places[-1][2] if places else start


def _sentences(text: str, start: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield where a sentence begins after quotation marks and the like, where it ends, and where the next one starts."""
    for _ in range(most):
        begin = _DECORATION.match(text, start).end()  # type: ignore[union-attr] # it matches nothing, too
        end = _SENTENCE_END.search(text, start)
        if end is None:
            yield begin, len(text), len(text)
            return
        start = end.end()
        yield begin, end.start() + 1, start


def _any_of(alternatives: tuple[str, ...], known: Mapping[str, str]) -> str:
    """Joins alternatives to one group and replaces the terms in them; no alternative matches nothing.

    Raises:
        ValueError: If an alternative names an unknown term.
    """

    def term(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise ValueError(f"unknown term <{match[1]}> in {match.string!r}")
        return known[match[1]]

    if not alternatives:
        return "(?!)"
    return "(?:" + "|".join(_TERM.sub(term, alternative) for alternative in alternatives) + ")"


def _loose(pattern: str) -> str:
    """Make a sentence's pattern match wherever the sentence stands in a text, and maybe more."""
    return pattern.replace(r"(?:\b", "(?:").replace("(?:^|", "(?:|").replace("|$", "|")


class _Pattern:
    """A regular expression that is compiled when it is first used: compiling all takes a process a quarter of a second.

    Its methods are those of :class:`re.Pattern`; they raise ``ValueError`` if it is no regular expression.
    """

    search: Callable[..., re.Match[str] | None]
    match: Callable[..., re.Match[str] | None]
    fullmatch: Callable[..., re.Match[str] | None]
    finditer: Callable[[str], Iterator[re.Match[str]]]

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        if name not in _Pattern.__annotations__:
            raise AttributeError(name)
        try:
            compiled = re.compile(self._pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error
        for method in _Pattern.__annotations__:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)
