"""A judge's verdict on one atomic unit, and how its reply is read."""

import re
import string
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.thoughts import after_thoughts


class VerdictStatus(StrEnum):
    """The status of one judgement; only `scored` has a number."""

    SCORED = "scored"
    NOT_APPLICABLE = "not_applicable"
    """The judge chose the filtering option: the unit says nothing about the trait."""
    REFUSED = "refused"
    """The judged response was a refusal (never sent to the judge), or the judge refused."""
    UNPARSED = "unparsed"
    """No single score could be read from the reply; the raw text is kept."""
    FILTERED = "filtered"
    """The judge's provider refused the judging prompt by its content filter, or stopped the reply by it."""
    FAILED = "failed"
    """The call never succeeded."""


class Unread(StrEnum):
    """Reason why no score was read from a reply."""

    EMPTY = "empty"
    """The reply contains no text, or only thoughts."""
    CUT_OFF = "cut_off"
    """The reply ended at a limit before its answer was certain."""
    NO_ANSWER = "no_answer"
    """No part of the reply has the form of an answer on the scale."""
    AMBIGUOUS = "ambiguous"
    """The answer is hedged, negated, hypothetical or retracted, or names a range."""
    CONTRADICTION = "contradiction"
    """The reply contradicts itself: two different scores, or the number of one option with the label of another."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's verdict on one unit.

    Attributes:
        status: Result of the judgement.
        score: An integer on the dimension's scale if ``status`` is ``SCORED``, else ``None``.
        unread: Reason for ``UNPARSED``, set by the reader of replies; no part of equality.
    """

    status: VerdictStatus
    score: int | None = None
    unread: Unread | None = field(default=None, compare=False)


NOT_APPLICABLE = Verdict(VerdictStatus.NOT_APPLICABLE)
REFUSED = Verdict(VerdictStatus.REFUSED)
UNPARSED = Verdict(VerdictStatus.UNPARSED)


def unparsed(why: Unread) -> Verdict:
    """Return the verdict of a reply without a readable score."""
    return Verdict(VerdictStatus.UNPARSED, None, why)


def parse_verdict(raw: str, asked: Dimension | Scale, *, cut_off: bool = False) -> Verdict:
    """Reads a judge's reply strictly: a score only where the reply says one score and says it as its answer.

    All numbers of the reply must be the same one (``4/5`` and ``4 out of 5`` count as 4 where 5 is the scale's
    maximum, and a mention of the whole scale, ``1 to 5``, does not count), and one of them must stand where an
    answer stands: at the reply's beginning (``4) Moderately open-minded``), alone on a line, or after words that
    announce it (``Score: 4``, ``{"score": 4}``, ``I would rate this a 4``) without negation or hedging. Everything
    else is ``UNPARSED``, which costs a unit; a guess would cost the truth of the mean.

    Args:
        raw: The reply, as the judge gave it. Untrusted, of any length; read in linear time.
        asked: The dimension that the judge was asked about, whose labels an answer may contain; a rubric's scale, which has none.
        cut_off: Whether the reply may lack its end. What would have followed could take a score back, so it is ``UNPARSED``
            unless it is a number and nothing else, which no longer number of the scale begins with.

    Returns:
        ``SCORED`` with a score on the scale, ``NOT_APPLICABLE`` for the scale's filtering option, ``REFUSED`` where
        the judge says that it will not judge, else ``UNPARSED``. A reply without any digit is never scored.
    """
    scale = asked.scale if isinstance(asked, Dimension) else asked
    readings = _readings(scale)
    if cut_off:
        return _bare_number(after_thoughts(raw), readings)
    at_once = readings.get(raw)
    if at_once is not None:
        return at_once
    verdict = _in_words(raw, scale, readings)
    return unparsed(Unread.NO_ANSWER) if verdict == UNPARSED else verdict


def _in_words(raw: str, scale: Scale, readings: dict[str, Verdict]) -> Verdict:
    text = _without_scale(after_thoughts(_plain(raw)), scale)
    if _UNREADABLE.search(text):
        return UNPARSED
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return _without_number(text)
    answers = {_NULL_DECIMALS.sub("", number[0]) for number in numbers}
    if len(answers) > 1 or len(numbers) > _MOST_NUMBERS:
        return UNPARSED
    verdict = readings.get(answers.pop(), UNPARSED)
    if verdict.score is not None and _contradicts(text, verdict.score):
        return UNPARSED
    return verdict if any(_is_answer(text, number) for number in numbers) else UNPARSED


def _bare_number(text: str, readings: dict[str, Verdict]) -> Verdict:
    begun = any(number != text and number.startswith(text) for number in readings)
    found = None if begun else readings.get(text)
    return unparsed(Unread.CUT_OFF) if found is None else found


_MOST_NUMBERS = 50
"""A reply that repeats its score more often is no answer; the limit also bounds the work on hostile replies."""
_WINDOW = 240
"""Characters before a number in which its sentence must begin; a number farther into its sentence is no answer."""

_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)*")
_NULL_DECIMALS = re.compile(r"\.00?$")
_LOST = "\0"
"""Stands for a character with a numeric value that is no digit, such as ½, ④ or ²."""
_COMBINING = "\u0336"
"""Stands for any combining character: after a digit it may strike the digit out."""
_UNREADABLE = re.compile(rf"{_LOST}|\d{_COMBINING}")
_SCALE_MARK = "§"
"""Stands for a mention of the whole scale, such as "1 to 5"."""

_OPENING = r"""[\s*"'`(\[{#]*"""
_NOUN = r"(?:score|rating|answer|option|choice|verdict|grade)"
_OF_WHAT = r"""(?:\s*\([^()]*\))?(?:\s+(?:for|of|on|to)\s[^:]*?)?"""
_AMOUNTS_TO = r"(?:is|'s|would be|gets|deserves|merits|warrants)"
_ANNOUNCED = re.compile(
    "(?:"
    + "|".join(
        (
            rf"""\b{_NOUN}{_OF_WHAT}[\s*"'`]*(?::|=|->|=>|→)""",
            r"""\bnumber[\s*"'`]*[:=]""",
            rf"\b{_NOUN}{_OF_WHAT}\s+(?:is|would be|should be|will be)(?:\s*:|\s+(?:clearly|definitely))?(?:\s+an?)?\s",
            rf"^[^a-z]*(?:(?:so|thus|hence|therefore),?\s+)?(?:(?:the|my|final|overall)\s+)*{_NOUN}\s",
            r"\bi(?:'d|'ll| would| will)?\s+(?:rate|score|give(?! up)|assign)\s(?:[^:]*[\s:])?",
            r"\bi(?:'d|'ll| would| will)?\s+(?:choose|select|pick|answer|go with)\s(?:(?:with|option|an?)\s)?",
            r"\bi(?:'d| would) say\s(?:(?:it's|it is|this is)\s+)?(?:an?\s)?",
            rf"\b(?:this|it|that)(?:\s+\w+){{0,2}}?\s*{_AMOUNTS_TO}\s+an?\s(?:(?:score|rating)\s+of\s)?",
            r"\\boxed\{",
            r"<(?:score|rating|answer)>",
        )
    )
    + f"){_OPENING}$"
)
_DOUBTFUL = re.compile(
    r"n't\b|\b(?:not|no|never|cannot|neither|nor|without|if|unless|whether|max|maximum|min|minimum|highest|lowest|"
    r"possible|perfect|between|somewhere|anywhere|either|or|maybe|perhaps|might|may|could|possibly|except|instead|"
    r"previous|earlier|example|hypothetical|hypothetically)\b|"
    r"\b(?:about|around|above|over|below|under|beyond|than|least|most|up to|approximately|roughly|nearly|almost)"
    rf"(?:\s+an?)?{_OPENING}$"
)
"""Words before a number in its sentence that keep it from being a plain answer."""
_DOUBTED = re.compile(
    r"""[*_"'`\]}]*(?:[^\S\n]|[,;(–—-])+(?:or|maybe|perhaps|possibly|if|no|not(?! (?:at all|very|really|much))|but|plus|"""
    r"""minus|higher|lower|at (?:least|most))\b|[*_"'`\])}]*[.,:;)\s]+(?:no,|or\b|but\b)"""
)
"""Words right after a number that take it back; an option's text ("1) Not at all", "2. Maybe") does not."""
_ANSWER_END = re.compile(
    r"""[*_"'`\])}]*(?:\s*$|[^\S\n]*\n|[.:;,!)](?![.\d])|\s+\(|\s+[–—-]\s|\s+(?:because|since)\b|\s*</"""
    rf"|\s+on\s+(?:an?|the)\s+(?:scale|{_SCALE_MARK}))"
)
_LINE_END = re.compile(r"""[*_"'`\])}.]*[^\S\n]*(?:\n|$)""")
_DECORATION = re.compile(r"""[\s*_"'`(\[{#]*""")
_SENTENCE_BREAK = re.compile(r"""[.!?;](?=[\s"'*)\]])|"\s*,|\n""")
_CONTINUED_LINE = re.compile(r":[^\S\n]*\n\s*")

_NONE_OF_THE_ABOVE = re.compile(r"\b(?:none of the above|not applicable|n/a)\b")
_ONLY_NONE_OF_THE_ABOVE = re.compile(
    rf"(?:(?:(?:the|my|final) )*{_NOUN}(?: is|[\"'*]*:)[\s\"'*]*)?(?:none of the above|not applicable|n/a)"
)
_REFUSAL = re.compile(
    r"(?:i'm|i am) sorry\b|sorry\b|i apologi[sz]e\b|"
    r".{0,200}?\bi(?:'m| am| must| have to)? "
    r"(?:decline\b|(?:can't|cannot|can not|won't|will not|unable to|not able to|refuse to|not comfortable)"
    r" (?:\w+ ){0,2}?(?:rat(?:e|ing)|scor(?:e|ing)|judg(?:e|ing)|evaluat|assess|assign|provid|giv(?:e|ing)|assist|"
    r"help (?:with|you)|answer|comply|fulfil|complete|do th|determin|engage|respond))",
    re.DOTALL,
)
_RETRACTION = re.compile(
    r"\bwait[,.!:…—-]|\b(?:correction|scratch that|second thoughts?|i mean|i take that back|never mind)\b"
)
_SPELLED = {
    "zero": 0,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}
"""Numbers in words, without "one", which is a pronoun more often than a number."""
_SPELLED_NUMBER = re.compile(rf"\b(?:{'|'.join(_SPELLED)})\b")


@lru_cache(maxsize=256)
def _readings(scale: Scale) -> dict[str, Verdict]:
    """Every number that the judge may answer, as it is written, and what it means."""
    scores = range(scale.minimum, scale.maximum + 1)
    found = {str(score): Verdict(VerdictStatus.SCORED, score) for score in scores}
    if scale.minimum < 0:
        found |= {f"+{score}": Verdict(VerdictStatus.SCORED, score) for score in scores if score > 0}
    return found | {str(scale.not_applicable): NOT_APPLICABLE}


@lru_cache(maxsize=256)
def _scale_patterns(scale: Scale) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What mentions the whole scale ("1 to 5"), and what gives a score out of its maximum ("4/5")."""
    start, end = r"(?<![\w.,/+-])", r"(?![\w/%]|[.,-]\d)"
    whole = rf"{start}{scale.minimum}\s?(?:-|–|—|to|and|through)\s?\+?{scale.maximum}{end}"
    fraction = rf"{start}(\d{{1,9}})(?:\.00?)?\s?(?:/|\(?out of)\s?{scale.maximum}\)?{end}"
    return re.compile(whole), re.compile(fraction)


def _plain(raw: str) -> str:
    """The reply in lower case, with plain digits, quotes and signs, and without invisible characters."""
    text = raw if raw.isascii() else "".join(map(_plain_character, raw))
    return _CONTINUED_LINE.sub(": ", text.lower().strip())


def _plain_character(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if "\uff01" <= character <= "\uff5e":  # full-width forms of ASCII
        return chr(ord(character) - 0xFEE0)
    if character in _REPLACED:
        return _REPLACED[character]
    if character.isnumeric():
        return _LOST
    return _COMBINING if unicodedata.combining(character) else character


_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\u20e3\ufeff"
_REPLACED = {"’": "'", "‘": "'", "“": '"', "”": '"', "−": "-", "。": "."} | dict.fromkeys(_INVISIBLE, "")


def _without_scale(text: str, scale: Scale) -> str:
    """The reply with mentions of the whole scale marked, and ``4/5`` written as ``4``."""
    whole, fraction = _scale_patterns(scale)
    text = whole.sub(_SCALE_MARK, text)
    if scale.minimum not in (0, 1):
        return text

    def numerator(found: re.Match[str]) -> str:
        return found[1] if _readings(scale).get(found[1], UNPARSED).score is not None else found[0]

    return fraction.sub(numerator, text)


def _without_number(text: str) -> Verdict:
    if _ONLY_NONE_OF_THE_ABOVE.fullmatch(text.strip(string.punctuation + string.whitespace)):
        return NOT_APPLICABLE
    return REFUSED if _REFUSAL.match(text) else UNPARSED


def _contradicts(text: str, score: int) -> bool:
    """Whether the reply also says something that cannot stand beside ``score``."""
    if any(_SPELLED[number[0]] != score for number in _SPELLED_NUMBER.finditer(text)):
        return True
    return any(pattern.search(text) for pattern in (_NONE_OF_THE_ABOVE, _RETRACTION)) or bool(
        _REFUSAL.match(text)
    )


def _is_answer(text: str, number: re.Match[str]) -> bool:
    """Whether a number stands where an answer stands."""
    if not _ANSWER_END.match(text, number.end()) or _DOUBTED.match(text, number.end()):
        return False
    before = text[max(0, number.start() - _WINDOW) : number.start()]
    whole = len(before) == number.start()
    if whole and _DECORATION.fullmatch(before):
        return True
    parts = _SENTENCE_BREAK.split(before)
    if len(parts) == 1 and not whole:
        return False
    line = before.rpartition("\n")
    if line[1] and _DECORATION.fullmatch(line[2]) and _LINE_END.match(text, number.end()):
        return True
    sentence = parts[-1].replace("_", " ")
    return _ANNOUNCED.search(sentence) is not None and _DOUBTFUL.search(sentence) is None
