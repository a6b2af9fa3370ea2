"""Finds where a judge's reply states a score: bare, on a labelled line or in a statement; everything else is never read.

A statement counts only where a clause begins with it, with nothing between it and its value but words of a closed vocabulary. So
negated, quoted, hypothetical, superlative and other people's scores have no form that is read.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.reply_text import BLANK, FOREIGN, WORDS, labelled

SCALE_MARK = "§"
"""Replaces a mention of the whole scale, such as "1 to 5"."""
_LONGEST_SENTENCE = 600
_SHORTEST_LABEL = 4
MOST_CLAIMS = 50


_SPACED = re.compile(r"[\W\w]*[a-z\u00c0-\u04ff]")
"""Matches a word of a script that separates words by spaces."""


_LITERAL = re.compile(r"[^\W_](?![?*{])")
"""Matches a pattern that begins with a letter or a digit."""
_GROUP = re.compile(r"\(\?:([^()]*)\)(?![?*{])(.*)", re.DOTALL)
"""Matches a pattern that begins with alternatives."""


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(_grouped(words))})"


def _grouped(words: Iterable[str], before: str = "", after: str = "") -> list[str]:
    """Return alternatives grouped by their first letter, so that a search skips all groups but one.

    Args:
        words: The alternatives.
        before: What must hold before a word, given behind its first letter, ``{}``: a search for a letter is several times as fast.
        after: What must follow a word.
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        groups.setdefault(word[0] if _LITERAL.match(word) else "", []).append(word)
    others = groups.pop("", [])
    found = [
        f"{letter}{before.format(letter)}(?:{'|'.join(word[1:] for word in words)}){after}"
        for letter, words in groups.items()
    ]
    return found + ([f"{before.format('')}(?:{'|'.join(others)}){after}"] if others else [])


def _all(kind: str) -> list[str]:
    return [word for words in WORDS[kind].values() for word in words]


def _by_script(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate words of scripts with spaces from words of scripts without."""
    spaced: list[str] = []
    unspaced: list[str] = []
    for word in words:
        (spaced if _SPACED.match(word) else unspaced).append(word)
    return spaced, unspaced


_UNLESS_WITHIN, _UNLESS_BEGUN = r"(?<!\w{})", r"(?!\w)"
"""Keep a word from matching within another word."""


def _word(words: Iterable[str]) -> str:
    """Alternatives as whole words; scripts without spaces have no word boundary."""
    spaced, unspaced = _by_script(words)
    return f"(?:{'|'.join([*_grouped(spaced, _UNLESS_WITHIN, _UNLESS_BEGUN), *_grouped(unspaced)])})"


class _Phrases:
    """Searches for phrases that begin and end as words do; in time that hardly depends on their number."""

    def __init__(self, phrases: Iterable[str], before: str = r"[^a-z0-9_\u00df-\u04ff]") -> None:
        spaced, unspaced = _by_script(phrases)
        self._spaced = re.compile(rf"{before}{_any(_expanded(spaced))}(?!\w)")
        self._unspaced = re.compile(_any(unspaced) if unspaced else "(?!)")

    def in_(self, text: str) -> bool:
        """Tell whether a text that begins with no letter has one of the phrases."""
        return self._spaced.search(text) is not None or (
            not text.isascii() and self._unspaced.search(text) is not None
        )


class _Stems:
    """Tells whether a text may have one of several phrases: whether it has the letters with which one begins."""

    def __init__(self, phrases: Iterable[str]) -> None:
        stems = set(map(_stem, phrases))
        stems = {stem for stem in stems if not any(other in stem for other in stems - {stem})}
        self._plain = tuple(filter(str.isascii, stems))
        self._foreign = tuple(stem for stem in stems if not stem.isascii())

    def may_be_in(self, text: str) -> bool:
        """Tell whether a text may have a phrase, in a tenth of the time of a search."""
        return has_any(text, self._plain) or (not text.isascii() and has_any(text, self._foreign))


def _stem(pattern: str) -> str:
    """Return the plain text with which a word's pattern begins."""
    pattern = re.sub(r"^\(\?<![^)]*\)", "", pattern)
    found = re.match(r"[^\\\[\](?*+|{.]*(?![?*{])", pattern)
    return found[0] if found else ""


def has_any(text: str, words: Iterable[str]) -> bool:
    """Tell whether a text has one of several pieces, also within words."""
    for word in words:  # noqa: SIM110 - any() with a generator takes twice the time
        if word in text:
            return True
    return False


def has_digit(text: str) -> bool:
    """Tell whether a plain text has a digit; a sixth of the time of a search."""
    return has_any(text, "0123456789")


def _expanded(phrases: Iterable[str]) -> Iterator[str]:
    """Yield phrases that begin with alternatives once for each of these."""
    for phrase in phrases:
        found = _GROUP.fullmatch(phrase)
        yield from (word + found[2] for word in found[1].split("|")) if found else (phrase,)


OUT_OF = _any(WORDS["out_of"])
NOT_APPLICABLE_WORDS = _any(WORDS["not_applicable"])
OPENING = re.compile(
    rf"\A(?:(?:q(?:uestion)?:[^\n]*\n\s*)?{_any(WORDS['roles'])}(?![^\n]*\n\s*b:)\s*[:\n]\s*|{_any(WORDS['assents'])}[,.!]\s+(?=\d{{1,4}}(?:\s?[).:–-]\s?[^\W\d]|\.?$)))"
)
"""Matches a role or an assent at the beginning of a reply."""


class Claim(NamedTuple):
    """A place where a reply states its score.

    Attributes:
        number: The number; ``None`` if the statement names no single number.
        text: The words that follow the number up to the end of its sentence.
        end: Where the claim ends in the rewritten reply.
        firm: Whether nothing hedges it.
    """

    number: str | None
    text: str
    end: int
    firm: bool = True


_ONLY_NOT_APPLICABLE = re.compile(NOT_APPLICABLE_WORDS)
_NOT_APPLICABLE = _Stems(WORDS["not_applicable"])
_NOT_APPLICABLE_LINE = re.compile(rf"[:=]\s*{NOT_APPLICABLE_WORDS}")
_NUMBER = r"[+-]?\d+(?:[.,]\d+)*"
_ANY_NUMBER = re.compile(_NUMBER)
_OPENING = r"[\s'(\[{]{0,8}"
_CLOSING = r"[\s')\]}]{0,8}"
_UNIT = rf"(?:\s?{_any(WORDS['units'])})?(?:\s?{_any(WORDS['endings'])})?"
_NOT_AFTER = r"(?!\w|[%°+/~^²]|[.,:-]\d|\s?\.\.|…|-(?:\w|$)|\s?[!(]{0,2}\?|\x00|\u0336)"
_SPACED_LEADS, _UNSPACED_LEADS = map(
    _any, _by_script([*_all("scores"), *_all("adjectives"), *WORDS["joints"]])
)
_VALUE = re.compile(
    rf"{_OPENING}(?:{_SPACED_LEADS}(?:[\s:]+|(?<='))|{_UNSPACED_LEADS}\s*|#\s*){{0,5}}{_OPENING}({_NUMBER})(?:st\b)?{_UNIT}{_NOT_AFTER}"
)
_TAIL = re.compile(
    rf"{_CLOSING}(?:\s*$|[.;!)\]](?!\d)|,(?!\d)|:|\s*[–—(<|{BLANK}]|\s-\s|\s+{_word([*WORDS['reasons'], *WORDS['after']])}|\s*{SCALE_MARK})"
)
_DOUBTED = re.compile(
    r"[*_'\]}]*(?:[^\S\n]|[,;(–—-])+(?:or|maybe|perhaps|possibly|if|no|not(?! (?:at all|very|really|much|(?:an? )?\d))|but|plus|minus|less|higher|lower|"
    r"at (?:least|most)|oder|ou|oppure|или|或)\b|[*_'\])}]*[.,:;)\s]+(?:no,|or\b|but(?! not)\b|wait\b|i mean\b)|\s*[?/]"
)
_LAST_NUMBER = re.compile(r"[.!]\s+(\d{1,4})\s*$")
"""Matches a number that stands alone after the last sentence of a line."""


class _Line(NamedTuple):
    """A line of a rewritten reply with its offset."""

    start: int
    text: str
    has_digit: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines that are not empty."""
    start = 0
    for line in text.split("\n"):
        if line and not line.isspace():
            yield _Line(start, line, has_digit(line))
        start += len(line) + 1


_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)")
_SENTENCE_BREAK = re.compile(r"(?<=[.!?;])\s|\n")
_BULLET = re.compile(r"^[^\S\n]*(?:[-•·+](?=\s+[^\W\d])|[|#>=]+)?[^\S\n]*")
_CONCLUSION = re.compile(_word(_all("conclusions")))
_LEADING = re.compile(rf"(?:{_word([*_all('conclusions'), *WORDS['connectives']])}[,:]?\s*)+")
_CLAUSE = re.compile(
    rf"[ ,:;(\[](?:(?<! ) *|(?<= )(?:- *| *(?={_word([*_all('conclusions'), *WORDS['connectives']])})))"
)
"""Matches what a clause of an English sentence begins with."""
_FOREIGN_CLAUSE = re.compile(rf"[–—]\s*|{_CLAUSE.pattern}|(?={_any(_by_script(_all('conclusions'))[1])})")
_ADVERB = (
    rf"(?!{_any(WORDS['denials'])}\b)(?!(?:near|almost|possib|potential|initial|original|previous)ly)\w+ly"
)
_HYPOTHETICAL = _Phrases(_all("hypothetical"))
_LONGEST_ATTRIBUTION = 120
_ATTRIBUTED = re.compile(rf"{_word([*_all('attributions'), *WORDS['others']])}[^,;:]{{0,60}}(?:[,:]| that)$")
_REMARK = re.compile(r"\s*note:\s*")
"""Matches what is a score's name in French and German, and begins a remark in English."""
_ANNOUNCING = re.compile(
    rf"{_word(_all('attributions'))}(?: (?:this|these|the following|as follows)(?: [^\W\d]+)?)?$"
)
_REFERENCE = re.compile(r"\bcorrect(?:ed)?\b.*\b(?:answer|response|result|output|value|number)")
"""Matches the name of what a graded response should have said."""
_SOLUTION = re.compile(r"\banswer (?:is|would be|will be)\b")
"""Matches a statement that in the middle of a critique solves the task."""
_NO_ANSWER = re.compile(rf"(?:^|:)\W*{_word(WORDS['not_answers'])}\s*[,:]\s*$")
_FIRST_PERSON = re.compile(_word(WORDS["first_person"]))
_DENIAL = _Phrases(WORDS["denials"])
_DENIED_NUMBER = re.compile(
    rf"(?:n't|{_word(WORDS['denials'])})[^\S\n]+(?:(?:[^\W\d]+(?:[^\S\n]|:)+){{0,2}}?(?:[^\S\n]|['(])*({_NUMBER})|(?:an? |the )?({BLANK}))"
)
_SCORE_NAME = re.compile(_any(_all("scores")))
_GIVEN = re.compile(
    r"\s*(?:based|given|since|because|as|considering|overall|in|on|for|therefore|thus|so|hence|after)\b"
)
_LIMITING = re.compile(
    r"\W*(?:(?:at|in|on|for|by|from|under|to|up to|before|until|as far as|within|beyond|with|against|during|through)\b)[^,;:]*,\s*$"
)
"""Matches an adverbial before a statement that may limit it to a part, a time or somebody's view: "Under a generous reading,"."""
_UNLIMITING = re.compile(
    r"\W*(?:in (?:my|light|line|accordance|terms|view|conclusion|summary|short|sum|total|general|the end|all|addition|contrast|comparison|response|fact|context|the range|the context)|on (?:balance|the whole|(?:a|the|this|our) (?:\w+[ -]){0,3}scale)"
    r"|for (?:this|these|that|all|the (?:given|above|provided|sentence|text|response|reasons?)|consistency|being|its|their|his|her|\w+(?:sion|ness|ism)\b)"
    r"|by (?:the|these|this) (?:\w+ )?(?:criteria|criterion|scale|rubric|definitions?)|from (?:the|this|these|my|what) (?:above|text|sentence|evidence|analysis|given|statement|is|i|reading|information)\b|under (?:the|this|these) (?:rubric|scale|criteria|guidelines)"
    r"|with (?:this|that|these|all|the|regard|respect|both|its|no)|to (?:sum|conclude|summari[sz]e|be|me|that end|determine|evaluate|rate|assess|score)|at (?:the end|the same|this point))"
)
_CONDITIONAL = re.compile(
    r"\s+would (?:be (?:for|if|when|given)|need|require|mean|imply|have|apply|take|suit)\b"
)
"""Matches words behind a number that tell when it would be given."""
_REASON = re.compile(rf"[\s(,;:.–—-]*{_word(WORDS['reasons'])}")
_PERSON = re.compile(rf"(?:the |this )?{_word(WORDS['persons'])}")
_DANGLING = re.compile(r"(?:\b(?:is|be|of|as|a)|[:=])\s*$")
_SPELLED_WORDS = (
    "\0",
    *(word for word in WORDS["spelled"] if word != "ten"),
    *(sign + "ten" for sign in " \n([':=~/|-"),  # not as in "sentence"
)
_LOUD = (*"0123456789", *_SPELLED_WORDS, *'"<>{}[]|\\$`_', " '")
"""Pieces of text that may be a number, a quotation or a machine format."""
_SPELLED = re.compile(rf"[\d\x00\W](?:(?<=[\d\x00])|{_any(WORDS['spelled'])}\b)")
"""Matches, in a text that begins with no letter, what may stand in the place of a number."""
_RETRACTED = _Phrases(word for words in WORDS["retractions"]["anywhere"].values() for word in words)
_FAULT = re.compile(
    rf"(?:{'|'.join(WORDS['judged_subjects'])})(?:(?!{_word(_all('scores'))})[^.;!?\n\d])*?{_word(WORDS['faults'])}(?![^.;!?\n]*\b(?:my|i)\b)"
)
"""Matches what a reason says is wrong with the judged text."""
_CONDITION = re.compile(rf",? {_word(WORDS['conditions'])}")
_LIMITED = re.compile(
    rf"(?:[\W_]|{SCALE_MARK})*(?:[^\W\d]+[\s,]+){{0,2}}?{_word(WORDS['conditions'])}"
    rf"|\s?[,;–—-]+\s*(?:(?:it|he|she|they|thus|so|some|one|many|others|people) )?(?:(?:would|might|could|may) )?{_word(_all('attributions'))}"
    rf"|\s?[,;–—-]+\s*(?:the|this) [^\W\d]+ {_word(_all('attributions'))}\W*(?:\n|$)"
)
_RETRACTING = re.compile(rf"[.!?;\n…(–—,-][\s'(\[–—-]{{0,8}}{_word(WORDS['retractions']['first'])}(?=\W|$)")
_CHANGES = re.compile(_word(WORDS["changes"]))
_CONCEDED = re.compile(
    rf"^\W*(?:[^\W\d]+:\s*)?{_word(WORDS['concessions']['clauses'])}[^,.;!?\n]*,(?=\s*\w)"
    rf"|^[^.;!?\n]*{_word(WORDS['concessions']['verbs'])}[^.;!?\n]*{_word(WORDS['concessions']['turns'])}"
)
"""Matches what a sentence concedes before its main point: "While one could argue for a 5, …", "It could be a 5, but …"."""
_SCORE_LINE = re.compile(rf"\W*(?!note:)(?:[^\W\d]+ ){{0,2}}?{_word(_all('scores'))}[^:=\n]{{0,20}}[:=]")
_RULED_OUT_BEHIND = re.compile(
    rf"\b(?:not|no|than|unlike|nor)\s(?:an? )?{_NUMBER}|{_NUMBER} would (?:need|require|mean|imply|take|have)\b|\bconfidence\b[^,;\n%]*%|{_word(WORDS['reasons'])}.*",
    re.DOTALL,
)
"""Matches numbers behind a score that belong to its reason."""
_ORDINAL = re.compile(_word(WORDS["ordinals"]))
_LETTER = re.compile(r"[^\W\d_]")
_LIST_ITEM = re.compile(r"^[^\S\n]*(?:#+[^\S\n]*)?(\d{1,2})[.)][^\S\n]+\S", re.MULTILINE)
_NAMED_NUMBER = re.compile(
    rf"\W*([^\W\d][^\d().,:;\n]{{1,60}}?)\s?\((\d{{1,4}})\)(?=\s*(?:$|[.,;:]|[–—-]\s|{_word(WORDS['reasons'])}))"
)
"""Matches words with a number in brackets: "Moderately introverted (2)"."""
_ROW = re.compile(rf"{_NUMBER}(?:\s+{_NUMBER})+\s*$")
_LINE_LEAD = re.compile(r"\s*(?:#{1,6}|[•·▪]|[-*+](?=\s\d{1,4}[).:]\s?[^\W\d]))\s*")
_BARE = re.compile(
    rf"[\s'(\[{{]{{0,8}}({_NUMBER}){_UNIT}{_NOT_AFTER}([\s'\]}}]*)(\)?[.:;!)](?!\d)|,(?!\s?\d)|[–—=-](?!\s?\d)|\(|\n|$|(?={_word(WORDS['reasons'])}|on an? ))?"
)


_LONGEST_OPTION = 150
_AROUND_OPTION = 20
"""Characters of the number and signs around an option's words."""
_LONGEST_NUMBER = 20
"""Characters of an option's number with signs around it."""
_OPTION_TEXT = re.compile(rf"(?:{_NUMBER}(?:\s?/\s?\d+)?)?\s?[).:-]?\s*(.*)")
_MOST_NAMES, _LONGEST_NAME = 200, 40
"""Names of fields that are remembered, and characters of one."""
_OPTION = re.compile(
    r"[*_\"'`]*(?:(\d{1,4})[*_]*(?:\)[.:]?|[.:]|(?=[*_\"'`]*$)))?\s*((?:[^\W\d][^\d]*?)?)(?:\s*\((\d{1,4})\))?\.?[*_\"'`]*"
)


@dataclass(frozen=True)
class Reader:
    """Finds claims in replies about one dimension or rubric.

    Attributes:
        labels: The options' words by number, plain and in lower case.
        poles: Words for the lower and the upper end of the scale, such as "introverted".
        head: What announces a value on a labelled line or in a sentence.
        label_words: The longest word of each option.
        longest_option: Characters of the longest option with its number.
        legend: Matches an explanation of the scale by its ends: "1 means very introverted and 5 very extroverted".
        names: Fields' names that were looked up, and whether they are like a score's.
    """

    labels: dict[int, str]
    head: re.Pattern[str]
    heading: re.Pattern[str]
    any_label: re.Pattern[str]
    poles: tuple[re.Pattern[str] | None, re.Pattern[str] | None]
    not_applicable: int
    echo: str
    ends: "Ends | None"
    label_words: tuple[str, ...]
    longest_option: int
    legend: re.Pattern[str] | None
    elsewhere: tuple[re.Pattern[str], re.Pattern[str]] | None
    names: dict[str, bool]

    def is_name(self, key: str) -> bool:
        """Tell whether a field or a tag is named like a score."""
        known = self.names.get(key)
        if known is not None:
            return known
        words = re.sub(r"[\s_-]+", " ", re.sub(r"^(?:final|overall|total)", r"\g<0> ", key)).strip()
        is_name = self.heading.fullmatch(words) is not None
        if len(self.names) < _MOST_NAMES and len(key) <= _LONGEST_NAME:
            self.names[key] = is_name
        return is_name

    def has_label(self, text: str) -> bool:
        """Tell whether a text may use an option's words; a tenth of the time of a search for them."""
        return has_any(text, self.label_words)

    def is_value(self, content: str) -> bool:
        """Tell whether a text is a number, an option's words, or both."""
        content = content.strip(" .*_\n")
        if len(content) > 120:  # noqa: PLR2004 - no option's words are longer
            return False
        if not content or not (
            content[0] in "+-"
            or content[0].isdecimal()
            or self.has_label(content)
            or _NOT_APPLICABLE.may_be_in(content)
        ):
            return False
        found = _OPTION_TEXT.fullmatch(content)
        return found is not None and (not found[1] or self.option_of(found[1]) is not None)

    def option_of(self, words: str) -> int | None:
        """Return the option whose words these are."""
        words = _same(words)
        if words in self.labels.values():
            return next(number for number, label in self.labels.items() if label == words)
        return self.not_applicable if _ONLY_NOT_APPLICABLE.fullmatch(words) else None

    def bare_option(self, text: str) -> str | None:
        """Return the number of a plain reply that is one option and nothing else: its number, its words, or both of them."""
        if len(text) > self.longest_option or (
            len(text) > _LONGEST_NUMBER and not (self.has_label(text) or _NOT_APPLICABLE.may_be_in(text))
        ):
            return None
        found = _OPTION.fullmatch(text)
        if found is None:
            return None
        if not found[2]:
            return found[1]
        number = found[1] or found[3]
        option = self.option_of(found[2])
        return str(option) if option is not None and number in {None, str(option)} else None

    def rewritten(self, text: str) -> str:
        """Rewrite a plain reply into labelled lines, the first of which is empty; leave out a copy of the options."""
        if self.echo and self.echo in text:
            text = text.replace(self.echo, "\n")
        if self.legend is not None and self.has_label(text):
            text = self.legend.sub(SCALE_MARK, text)
        return "\n" + labelled(text, self.is_name, self.is_value, self._tells_end)

    def _tells_end(self, text: str) -> bool:
        return (
            self.ends is not None
            and self.ends.may_name(text)
            and any(pattern.search(text) for pattern in self.ends.signs)
        )

    def claims(self, text: str, *, signed: bool) -> list[Claim]:
        """Return every place where a rewritten reply states its score, in their order."""
        lines = list(_lines(text))
        lines = [line for n, line in enumerate(lines) if n == 0 or not _announces(lines[n - 1].text)]
        if not lines:
            return []
        stated = islice(self._stated(text, lines, signed=signed), MOST_CLAIMS + 1)
        claims = {*self._named(lines), *self._bare(text, lines), *stated}
        return sorted(claims, key=lambda claim: (claim.end, not claim.firm))[: MOST_CLAIMS + 1]

    def _bare(self, text: str, lines: list["_Line"]) -> Iterator[Claim]:
        """Numbers that begin the reply or its last line, or are a line's only content."""
        lines = lines if len(lines) <= 2 * MOST_CLAIMS else [*lines[:MOST_CLAIMS], *lines[-MOST_CLAIMS:]]
        row = _ROW.match(lines[0].text) if len(lines) > 1 and lines[0].has_digit else None
        if row is not None and len(numbers := set(row[0].split())) > 1:  # the scores of several texts
            yield from (Claim(number, "", lines[0].start + row.end()) for number in numbers)
        for n, start, line in ((n, each.start, each.text) for n, each in enumerate(lines) if each.has_digit):
            lead = _LINE_LEAD.match(line)
            found = _BARE.match(line, lead.end() if lead else 0)
            if found is None:
                continue
            rest = line[found.end() :].strip(" .)")
            alone = not rest
            labelled_ = bool(rest) and self._fits(rest, found[1])
            if lead and lead[0].strip() in {"-", "*", "+"} and not labelled_:
                continue
            heading = found[3] is None or (
                found[3] in {".", ")", ")."} and len(lines) > 1 and rest[-1:] not in ".!?"
            )
            if not (alone or labelled_) and (heading or len(set(_LIST_ITEM.findall(text))) > 1):
                continue
            if not (alone or n == 0 or (labelled_ and n == len(lines) - 1)):
                continue
            prose = not labelled_ and rest[:1].isalpha() and (found[3] or "")[:1] in {".", ")", "\n"}
            if rest and not labelled_ and self._is_item(found, rest, prose=prose):
                continue
            if _DOUBTED.match(line, found.end(1)) and not labelled_:
                yield Claim(None, "", start + found.end(), firm=False)
                continue
            reason = line[found.end(1) :] if _REASON.match(line, found.end()) else rest
            if not prose and _other_number(_SENTENCE_END.split(reason)[0], found[1]):
                yield Claim(None, "", start + found.end(), firm=False)
                continue
            yield Claim(found[1], rest, start + found.end())

    def _is_item(self, found: re.Match[str], rest: str, *, prose: bool) -> bool:
        """Tell whether a number that prose follows counts a list's items; beside options it needs a reason or their words."""
        sign = (found[3] or "").strip()
        if (
            found[1] != str(self.not_applicable)
            and len(self.labels) > 1
            and rest[:1].isalpha()
            and sign not in {"", ","}
        ):
            first = sign[0] in ".)" or found[1] == "1"
            return _REASON.match(rest) is None and (first or _PERSON.match(rest) is None)
        item = found[1] == "1" and sign.strip(".:") in {"", ")"}
        return item or (prose and _ORDINAL.match(rest) is not None)

    def _named(self, lines: list["_Line"]) -> Iterator[Claim]:
        """Numbers in brackets behind an option's words at the beginning of the first or the last line."""
        for line in {lines[0], lines[-1]}:
            found = _NAMED_NUMBER.match(line.text) if line.has_digit else None
            if found and self._names(found[1], found[2]):
                firm = not _other_number(line.text[found.end() :], found[2])
                yield Claim(found[2], "", line.start + found.end(), firm)

    def _names(self, words: str, number: str) -> bool:
        """Tell whether words are an option's, or a degree and an end of the scale that fit the number."""
        option = self.option_of(words)
        if option is None:
            named = [each for each, label in self.labels.items() if label.startswith(_same(words) + " ")]
            option = named[0] if len(named) == 1 else None
        if option == int(number):
            return True
        return (
            self.ends is not None and self.ends.may_name(words) and self.ends.name(_same(words), int(number))
        )

    def _fits(self, words: str, number: str) -> bool:
        """Tell whether words begin with the label of an option."""
        label = self.labels.get(int(number), "") if _PLAIN_NUMBER.fullmatch(number) else ""
        words = words.lstrip(" .):-–—(")
        first = _same(_LABEL_END.split(words, maxsplit=1)[0])
        if label and first:
            if first.startswith(label) or (label.startswith(first) and len(first) >= _SHORTEST_LABEL):
                return True
            if self.ends is not None and self.ends.name(first, int(number)):
                return True
        return self.has_label(words) and self.any_label.match(_same(words)) is not None

    def _stated(self, text: str, lines: list["_Line"], *, signed: bool) -> Iterator[Claim]:
        signs = _NOT_APPLICABLE.may_be_in(text) or self.has_label(text)
        for index, line in enumerate(lines):
            after = lines[index + 1] if index + 1 < len(lines) else None
            worded = signs or has_any(f"\n{line.text}", _SPELLED_WORDS)
            if not (worded or line.has_digit) and not (
                after.has_digit if after is not None else _dangles(line.text)
            ):
                continue
            bullet = _BULLET.match(line.text)
            offset = line.start + (bullet.end() if bullet else 0)
            content = text[offset : line.end]
            if _LETTER.search(content) is None:
                continue
            if after is not None and self._is_heading(content):
                bare = _VALUE.match(after.text.strip(" |"))
                if bare and not after.text.strip(" |")[bare.end() :].strip(" .)]"):
                    yield Claim(bare[1], "", after.end)
                continue
            yield from self._in_line(content, offset, worded=worded, signed=signed, last=after is None)

    def _is_heading(self, content: str) -> bool:
        """Tell whether a line is a score's name, maybe with the scale in brackets."""
        return ("(" in content or not has_digit(content)) and bool(
            self.heading.fullmatch(content.strip(" #*:.|"))
        )

    def _in_line(
        self, content: str, offset: int, *, worded: bool, signed: bool, last: bool
    ) -> Iterator[Claim]:
        begin, length = 0, len(content.rstrip())
        for end in [*(found.end() for found in _SENTENCE_END.finditer(content)), len(content)]:
            sentence = content[begin:end]
            ends = last and end >= length
            if 0 < len(sentence) <= _LONGEST_SENTENCE and (
                has_digit(sentence)
                or (worded and self._has_words(sentence, last=ends))
                or (ends and _dangles(sentence))
            ):
                yield from self._in_sentence(
                    sentence, content[end : end + 200], offset + begin, signed=signed, last=ends
                )
            begin = end
        alone = _LAST_NUMBER.search(content) if last and content.rstrip()[-1:].isdecimal() else None
        if alone is not None and not has_digit(content[: alone.start()]):
            yield Claim(alone[1], "", offset + alone.end(1))

    def _has_words(self, sentence: str, *, last: bool) -> bool:
        """Tell whether a sentence has words that may stand in the place of a number."""
        return bool(
            _SPELLED.search("\n" + sentence)
            or (self.has_label(sentence) and self.any_label.search(sentence))
            or (_ONLY_NOT_APPLICABLE if last else _NOT_APPLICABLE_LINE).search(sentence)
        )

    def _in_sentence(
        self, sentence: str, rest: str, offset: int, *, signed: bool, last: bool
    ) -> Iterator[Claim]:
        lead = len(sentence) - len(sentence.lstrip())
        clause = _CLAUSE if sentence.isascii() else _FOREIGN_CLAUSE
        starts = [lead, *(found.end() for found in clause.finditer(sentence))]
        done = -1
        for start in starts:
            if start < done or (clause is _CLAUSE and sentence[start : start + 1].isdecimal()):
                continue
            leading = _LEADING.match(sentence, start)
            concluded = leading is not None and _CONCLUSION.search(leading[0]) is not None
            head = self.head.match(sentence, leading.end() if leading else start)
            head = head or (self.head.match(sentence, start) if leading else None)
            if head is None:
                bare = _VALUE.match(sentence, leading.end()) if leading and concluded and last else None
                if bare and not sentence[bare.end() :].strip(" .!)]'"):
                    yield Claim(bare[1], "", offset + bare.end())
                continue
            if signed and re.search(r"-\s*$", head[0]):
                continue
            if len(self.labels) == 1 and (
                _REFERENCE.search(head[0]) or (not last and _SOLUTION.search(head[0]))
            ):
                continue
            done = head.end()
            before = sentence[:start].rstrip()
            if _somebody_else(before) and (leading is None or before.endswith(":")):
                continue
            claim = self._claim(sentence, rest, head, offset, concluded=concluded, last=last)
            if claim is not None:
                yield claim

    def _claim(  # noqa: PLR0911 - one return for each thing that keeps a statement from being read
        self,
        sentence: str,
        rest: str,
        head: re.Match[str],
        offset: int,
        *,
        concluded: bool,
        last: bool,
    ) -> Claim | None:
        prefix, value = sentence[: head.start()], _VALUE.match(sentence, head.end())
        if head["alone"] is not None and (
            value is None
            or (
                sentence[value.end() :].strip(" .)]:!*") and not self._fits(sentence[value.end() :], value[1])
            )
        ):
            return None
        if value is None or not _TAIL.match(sentence, value.end()):
            return self._worded_claim(sentence, head, value, offset, last=last)
        if sentence.rstrip().endswith("?") or (not concluded and self._is_hypothetical(prefix, head[0])):
            return None
        tail = sentence[value.end() :]
        if self.elsewhere and (self.elsewhere[0].search(prefix + head[0]) or self.elsewhere[1].match(tail)):
            return None
        if not sentence[value.end(1) :].strip():
            return Claim(value[1], rest, offset + value.end())
        if _CONDITIONAL.match(tail):
            return None
        if (
            _DOUBTED.match(sentence, value.end(1))
            and not self._fits(tail, value[1])
            and not self._fits(rest, value[1])
        ):
            return Claim(None, "", offset + value.end(), firm=False)
        if _other_number(tail, value[1]):
            return Claim(value[1], "", offset + value.end(), firm=False)
        return Claim(value[1], tail if tail.strip(" .)") else rest, offset + value.end())

    def _worded_claim(
        self, sentence: str, head: re.Match[str], value: re.Match[str] | None, offset: int, *, last: bool
    ) -> Claim | None:
        """Read a statement without a number, or with more than one."""
        words = _same(sentence[head.end() :].strip(" .'"))
        if self.option_of(words) is not None and not sentence[: head.start()].strip():
            return Claim(str(self.option_of(words)), words, offset + len(sentence))
        if (
            (" would " in head[0] and _CONDITION.match(sentence, value.end()))
            if value
            else _REMARK.fullmatch(head[0])
        ):
            return None
        following = sentence[head.end() : head.end() + 60]
        cut_off = last and not following.strip(" .…*'") and _DANGLING.search(head[0])
        if cut_off or _SPELLED.search(" " + following):
            return Claim(None, "", offset + (len(sentence) if value else head.end()), firm=False)
        return None

    @staticmethod
    def _is_hypothetical(prefix: str, head: str) -> bool:
        """Tell whether the words before a statement, or its verb, make it hypothetical."""
        if _HYPOTHETICAL.in_("; " + prefix.lstrip()):
            return True
        if _LIMITING.match(prefix) and not _UNLIMITING.match(prefix):
            return True
        other = " would " in f" {head} " and not head.lstrip().startswith("i ")
        return other and bool(prefix.strip()) and not _GIVEN.match(prefix)

    def names_only(self, text: str, number: int) -> bool:
        """Tell whether a text's only words for the scale are the number's own label, directly behind the number."""
        before, label, after = text.partition(self.labels.get(number, "\n"))
        begun = before.rstrip(" .):–—-(")
        return (
            bool(label)
            and begun.endswith(str(number))
            and not begun[-2:-1].isdecimal()
            and not after[:1].isalnum()
            and not any(self.has_label(part) for part in (before, after))
            and not (self.ends is None or self.ends.may_name(before) or self.ends.may_name(after))
        )

    def misnames(self, words: str, number: int) -> bool:
        """Tell whether the words directly behind a number resemble the label of other options more than its own."""
        sentence = _CLAIM_END.split(words.lstrip(" .):-–—(!,=['"), maxsplit=1)[0]
        if (
            self.ends is not None
            and len(sentence) <= _LONGEST_OPTION
            and self.ends.contradict(_WHICH_IS.sub("", sentence), number)
        ):
            return True
        words = _same(_LABEL_OR_REASON_END.split(words.lstrip(" .):-–—(!"), maxsplit=1)[0])
        said = set(words.split())
        if not said or len(said) > 8:  # noqa: PLR2004 - a sentence, no label
            return False
        likeness = {
            n: len(said & set(label.split())) / len(said | set(label.split()))
            for n, label in self.labels.items()
        }
        most = max(likeness.values())
        if most >= 0.5:  # noqa: PLR2004 - half of the words
            return likeness.get(number, 0.0) < most
        return (
            self.ends is None
            and _DENIED.search(words) is not None
            and any(pole and pole.search(words) for pole in self.poles)
        )

    def states_nothing(self, text: str) -> bool:
        """Tell whether a plain text surely states no score and names no option."""
        return not (
            has_any(text, _LOUD)
            or self.has_label(text)
            or _NOT_APPLICABLE.may_be_in(text)
            or _dangles(text)
            or _announces(text)
        )

    def fits(self, text: str, side: int) -> bool:
        """Tell whether what a text without options says of the scale surely fits a number on a side of it; see `contradicts`."""
        if self.ends is None:
            return len(self.labels) == 1
        return not self.ends.may_name(text) or (abs(side) == 1 and not self.contradicts(text, side))

    def contradicts(self, text: str, side: int) -> bool:
        """Tell whether the text denies the end of the scale on which its number lies, or asserts only the other one.

        Args:
            text: The rewritten reply.
            side: -1 for a number of the lower half, 1 for one of the upper half.
        """
        own, other = self.poles[::-side]
        if own is None or other is None or not (self.ends is None or self.ends.may_name(text)):
            return False
        if any(_DIRECTLY_DENIED.search(text[max(0, m.start() - 20) : m.start()]) for m in own.finditer(text)):
            return True
        if self.ends is not None:
            own, other = self.ends.signs[::-side]
        return own.search(text) is None and any(
            _ASSERTED.search(text[max(0, m.start() - 50) : m.start()]) for m in other.finditer(text)
        )

    def mentions(self, text: str) -> Iterator[tuple[int | None, int, bool, int]]:
        """Yield the options whose words a text uses: the number before them, the option, whether it is denied, and where."""
        if not self.has_label(text):
            return
        for found in self.any_label.finditer(text):
            option = self.option_of(found[2])
            if option is not None:
                before = _ANY_END.split(text[max(0, found.start() - 60) : found.start()])[-1]
                yield (
                    int(found[1]) if found[1] else None,
                    option,
                    _DENIED.search(before) is not None,
                    found.start(),
                )


_PLAIN_NUMBER = re.compile(r"[+-]?\d{1,4}")
_LABEL_END = re.compile(r"[.;:\n(,]")
_LABEL_OR_REASON_END = re.compile(r"[.;:\n(,]| because | since ")
_CLAIM_END = re.compile(r"[.;\n]")
_ANY_END = re.compile(r"[.!?;\n]")
_WHICH_IS = re.compile(r"(?:which|that|i\.e\.?|and) (?:is |means )?|is |as ")
_DENIED = re.compile(
    r"n't\b|\b(?:not|no|never|neither|nor|than|whether|if|opposite|rather|from|between|instead|could|would|might|unlike|without|how|when|where|as opposed|options|option(?!\W*(?:is\W*)?\d))\b"
)


_DIRECTLY_DENIED = re.compile(r"(?:\bnot|n't|\bnever) (?:an? |the |at all |really )?$")
_ASSERTED = re.compile(
    r"\b(?:is|are|seems?|appears?|sounds?|looks?|being|indicates?|suggests?|shows?|reflects?)\b"
    rf"(?:(?!{_DENIED.pattern}|less\b)[^.;!?\n])*$"
)


def _dangles(sentence: str) -> bool:
    """Tell whether a sentence ends where a value should stand."""
    sentence = sentence.rstrip(" .…*'")
    return _DANGLING.search(sentence, max(0, len(sentence) - 10)) is not None


def _announces(text: str) -> bool:
    """Tell whether a text ends with words that attribute the next line to somebody else ("The post says")."""
    text = text.rstrip(" *")
    if text.endswith(":") and _NO_ANSWER.search(text):
        return True
    return (
        text[-1:].isalpha() and _ANNOUNCING.search(text, max(0, len(text) - _LONGEST_ATTRIBUTION)) is not None
    )


def _somebody_else(prefix: str) -> bool:
    """Tell whether the words before a statement attribute it to somebody else."""
    if prefix[-1:] in ",:" and _NO_ANSWER.search(prefix):
        return True
    ends = prefix.endswith((",", ":", " that"))
    verb = _ATTRIBUTED.search(prefix, max(0, len(prefix) - _LONGEST_ATTRIBUTION)) if ends else None
    return verb is not None and _FIRST_PERSON.search(prefix, 0, verb.start()) is None


def leads_elsewhere(before: str) -> bool:
    """Tell whether the line before scores marks them as an example, hypothetical or somebody else's ("The text demands:")."""
    line = before.rstrip(" \n*_`'\"[{(").rpartition("\n")[2].lower()
    if not line.endswith(":"):
        return _announces(line)
    return (
        (_somebody_else(line) and (_NO_ANSWER.search(line) is not None or _ASKED.search(line) is None))
        or _HYPOTHETICAL.in_("; " + line.lstrip())
        or _FOREIGN_LEAD.search(line) is not None
    )


_ASKED = re.compile(r"\b(?:you|as|following|format)\b")
"""Matches what attributes the form of an answer, not the answer: "As requested:", "The scores that you asked for:"."""
_FOREIGN_LEAD = re.compile(rf"(?:^|\bthe )(?:{FOREIGN.pattern})(?: [^\W\d]+){{0,2}}? {_word(_all('scores'))}")


def _other_number(tail: str, number: str) -> bool:
    """Tell whether a number beside the stated one follows it, before any reason."""
    return has_digit(tail) and any(
        other != number for other in _ANY_NUMBER.findall(_RULED_OUT_BEHIND.sub("", tail))
    )


def denies(text: str, number: str) -> bool:
    """Tell whether a reply denies the score that it states, or one that it quotes."""
    return ("n't" in text or _DENIAL.in_(text)) and any(
        (found[2] or found[1] == number)
        and _SCORE_NAME.search(text, max(0, found.start() - 40), found.start())
        for found in _DENIED_NUMBER.finditer(text)
    )


def takes_nothing_back(reason: str) -> bool:
    """Tell whether a reason behind a score, without numbers, does not take it back."""
    return _LIMITED.match(reason) is None and not _is_retracting(reason)


def taken_back(text: str, end: int, score: int, numbers: frozenset[str]) -> bool:
    """Tell whether what follows a reply's last claim takes it back or speaks of another score."""
    rest = text[end:]
    if not rest.strip(" .*"):
        return False
    if _LIMITED.match(rest):
        return True
    if _is_retracting(rest):
        rest = _FAULT.sub("", rest)
        if _is_retracting(rest):
            return True
    if not has_digit(rest):
        return False
    for sentence in _SENTENCE_BREAK.split(rest):
        found = [
            number
            for number in _ANY_NUMBER.findall(_CONCEDED.sub("", sentence[:_LONGEST_SENTENCE]))
            if number in numbers and number != str(score)
        ]
        if found and (_CHANGES.search(sentence) or _SCORE_LINE.match(sentence)):
            return True
    return False


def _is_retracting(rest: str) -> bool:
    rest = "\n" + rest
    return _RETRACTED.in_(rest) or _RETRACTING.search(rest) is not None


def _same(words: str) -> str:
    """Return words in the form in which labels are compared."""
    words = words.lower()
    words = _NOR.sub("or", words) if "nor" in words else words
    return " ".join(words.replace("-", " ").split()).strip(" .,;:!)(*'\"")


_NOR = re.compile(r"\bnor\b")


@lru_cache(maxsize=256)
def reader(asked: Dimension | Scale) -> Reader:
    """Return the reader of replies about a dimension, or about a rubric without labels."""
    dimension = asked if isinstance(asked, Dimension) else None
    scale = asked.scale if isinstance(asked, Dimension) else asked
    found = dimension.option_labels if dimension else {}
    labels = {number: _same(label) for number, label in found.items() if label}
    labels.setdefault(scale.not_applicable, "none of the above")
    names = (
        _names(dimension)
        if dimension
        else frozenset(WORDS["dimensions"]).union(*WORDS["dimensions"].values())
    )
    poles = _poles(labels, scale)
    head, heading = _head(names, poles[1], dimension.id.lower() if dimension else "")
    words = [
        re.sub(
            r"\\?[\s-]+", r"[\\s-]+", re.sub(r"\bor\b", "(?:or|nor)", re.escape(label).replace("\\ ", " "))
        )
        for label in labels.values()
    ]
    any_label = re.compile(rf"(?:(?<![\w.])(\d{{1,4}})\s?[).:–—-]\s?)?(?<!\w)({_any(words)})(?!\w)")
    echo = re.sub(r"\s+", " ", dimension.options.lower()) if dimension else ""
    return Reader(
        labels,
        head,
        heading,
        any_label,
        (_whole(poles[0]), _whole(poles[1])),
        scale.not_applicable,
        echo,
        _ends(names, scale) if dimension else None,
        tuple({max(label.split(), key=len) for label in labels.values() if label}),
        max(map(len, [*labels.values(), *WORDS["not_applicable"]])) + _AROUND_OPTION,
        _legend(labels, scale),
        _elsewhere(names) if dimension and names & WORDS["dimensions"].keys() else None,
        {},
    )


def _elsewhere(names: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what, before a statement and behind a score, says that it is about another dimension."""
    groups = ({name, *more} for name, more in WORDS["dimensions"].items() if name not in names)
    others, own = _word(word for group in groups for word in group), _word(map(re.escape, names))
    about = rf"\b(?:for|regarding|concerning|on|in terms of|as (?:for|to)|für|pour|para|per|для) {others}"
    return re.compile(rf"{about}(?!.*{own})"), re.compile(rf"\W*{about}")


def _legend(labels: dict[int, str], scale: Scale) -> re.Pattern[str] | None:
    ends = [(number, labels.get(number, "")) for number in (scale.minimum, scale.maximum)]
    parts = [
        rf"(?<![\w.]){number} ?(?:=|:|is|being|means|meaning|for|stands for|represents|indicates)? ?[\"']?{re.escape(label)}\b[\"']?"
        for number, label in ends
        if label
    ]
    return re.compile(r"[^.!?\n]{0,60}?".join(parts)) if len(parts) == len(ends) else None


def _poles(labels: dict[int, str], scale: Scale) -> tuple[str, str]:
    """Return what distinguishes the labels of the lowest and the highest score: "very introverted", "very extroverted"."""
    low, high = labels.get(scale.minimum, "").split(), labels.get(scale.maximum, "").split()
    same = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), 0)
    return " ".join(low[same:]), " ".join(high[same:])


class Ends(NamedTuple):
    """Patterns of words for the ends of a dimension.

    Attributes:
        words: Cognates of the options' words for the lower and the upper end.
        signs: These and other words, among them the trait's name with a direction ("low extraversion").
        limits: The lowest and the highest score.
        stems: How the words, signs and traits' names begin.
    """

    words: tuple[re.Pattern[str], re.Pattern[str]]
    signs: tuple[re.Pattern[str], re.Pattern[str]]
    limits: tuple[int, int]
    stems: _Stems

    def may_name(self, text: str) -> bool:
        """Tell whether a text may have one of the signs or a trait's name."""
        return self.stems.may_be_in(text)

    def contradict(self, words: str, number: int) -> bool:
        """Tell whether words about a number state the other end of the scale, another degree or the middle."""
        middle, degree = sum(self.limits), _DEGREE.match(words)
        side = (2 * number > middle) - (2 * number < middle)
        named = self.may_name(words)
        low, high = (named and any(_undenied(words, pattern)) for pattern in self.signs)
        if number not in range(self.limits[0], self.limits[1] + 1):
            return low != high
        if side == 0 and not _NEUTRAL.match(words):
            start = degree.end() if degree else 0
            return low != high and any(pattern.match(words, start) for pattern in self.words)
        if side and (low, high) == ((True, False) if side > 0 else (False, True)):
            return True
        if _NEUTRAL.match(words):
            return side != 0 and not (low or high)
        if degree is None or self.words[side > 0].match(words, degree.end()) is None:
            return False
        return (degree["strong"] is not None) != (number in self.limits)

    def name(self, words: str, number: int) -> bool:
        """Tell whether words are a degree and an end, in any language, and fit a number."""
        degree = _DEGREE.match(words)
        start = degree.end() if degree else 0
        ends = [found.end() for pattern in self.words if (found := pattern.match(words, start))]
        named = any(len(words) - end <= _LONGEST_ENDING for end in ends) or _NEUTRAL.fullmatch(words)
        return bool(named) and not self.contradict(words, number)


def _undenied(words: str, pattern: re.Pattern[str]) -> Iterator[bool]:
    for found in pattern.finditer(words):
        yield _DENIED_END.search(words, max(0, found.start() - 40), found.start()) is None


_DENIED_END = re.compile(
    rf"(?:n't\b|{_word([*WORDS['denials'], 'neither', 'nor', 'than', 'less', 'without', 'or'])})[^.;:]*$"
)
_LONGEST_ENDING = 3
"""Characters that may follow a stem, as in 内向的です or "introvertierte"."""
_NEUTRAL = re.compile(rf"{_word(WORDS['neutral'])}(?=\W|$)")
_DEGREE = re.compile(rf"(?:(?P<strong>{_any(WORDS['strong'])})|{_any(WORDS['mild'])})\s?")


@lru_cache(maxsize=256)
def _ends(names: frozenset[str], scale: Scale) -> Ends | None:
    """Return the words for the ends of a known dimension."""
    found = next((ends for name, ends in WORDS["poles"].items() if name in names), None)
    if found is None:
        return None
    much, little = (
        rf"(?:{_any(WORDS[kind])} (?:(?:in|on|levels? of|degree of) )?)" for kind in ("much", "little")
    )
    low, high = _word(found["low_trait"]), _word(found["high_trait"])
    words = re.compile(_word(found["low"])), re.compile(_word(found["high"]))
    signs = (
        rf"{words[0].pattern}|{_word(found['low_signs'])}|{much}{low}|{little}{high}|{low} is {_any(WORDS['much'])}\b",
        rf"{words[1].pattern}|{_word(found['high_signs'])}|{much}{high}|{little}{low}|{high} is {_any(WORDS['much'])}\b",
    )
    patterns = re.compile(signs[0]), re.compile(signs[1])
    return Ends(
        words,
        patterns,
        (scale.minimum, scale.maximum),
        _Stems(word for kind in found.values() for word in kind),
    )


def _whole(phrase: str) -> re.Pattern[str] | None:
    words = r"[\s-]+".join(map(re.escape, phrase.split()))
    return re.compile(_word([words])) if phrase else None


def _names(dimension: Dimension) -> frozenset[str]:
    """Return the words by which judges call a dimension."""
    own = {dimension.name.lower(), dimension.display_name.lower()}
    known = {name: {name, *others} for name, others in WORDS["dimensions"].items()}
    return frozenset(own.union(*(others for name, others in known.items() if own & others)))


@lru_cache(maxsize=256)
def _head(names: frozenset[str], pole: str, short: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    dimension = _any(map(re.escape, names)) if names else "(?!)"
    trait = _any(map(re.escape, [*names, *({pole, pole.replace(" ", "-")} if pole else ())]))
    adjectives, nouns = _any(_all("adjectives")), _any(_all("scores"))
    people = _any(WORDS["judged"])
    judged = _any([*WORDS["objects"], *map(re.escape, names)])
    of_what = rf"(?:\s*[(\[][^()\[\]\n]{{0,40}}[)\]]|\s?{judged}(?![^\W_])){{0,10}}?"
    name = rf"(?:{adjectives}[ -]?){{0,5}}(?:(?:(?:{people}'s )?{trait}[ -]?)?{nouns}|(?:{people}'s )?{dimension}(?: (?:score|rating|level))?)(?:[ -]{adjectives}){{0,2}}"
    field = rf"|(?<![(\[]){re.escape(short)}(?=\s*[:=])" if short else ""
    unspaced = r"(?![a-z\u00c0-\u04ff0-9])"
    unspaced_word = r"(?![a-z\u00c0-\u04ff])"
    separator = r"\s*(?::+|=>?|->|→|–|—|-(?=\s)|\|)\s*"
    copula = rf"\s?{_any(_all('copulas'))}{unspaced_word}\s*:?\s*(?:{_word(_all('conclusions'))}\s*)?"
    statements = [
        form.replace("<adverb>", _ADVERB)
        .replace("<object>", rf"{judged}(?:\s?{judged}){{0,9}}")
        .replace("<judged>", people)
        .replace("<name>", name)
        .replace("<score>", "(?:score|rating|grade|level)")
        for form in _all("statements")
    ]
    own = r"(?:,? (?:that )?i (?:would |will |'d )?(?:give|assign|choose|select|award)(?: (?:to )?(?:it|this(?: response| sentence| text)?|the response))?)?"
    head = (
        rf"(?:(?:{name}{field}){unspaced}{of_what}{own}(?:{separator}|{copula})"
        rf"|{_any(statements)}{unspaced_word}(?:\s*:)?\s*"
        rf"|(?P<alone>(?:(?:the|my|final|overall) ){{0,3}}(?:option|answer|score|rating|choice)\s))"
    )
    return re.compile(head), re.compile(
        rf"(?:{name}|{re.escape(short) or '(?!)'})(?:\s*\([^()\n]{{0,40}}\))?"
    )
