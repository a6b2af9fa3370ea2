"""A judge's verdict on one atomic unit, and how its reply is read."""

import re
import string
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.phrases import WORDS, all_words, has_any, has_digit, one_of
from app.domain.judging.reply_claims import (
    MOST_CLAIMS,
    NOT_APPLICABLE_WORDS,
    OPENING,
    OUT_OF,
    SCALE_MARK,
    Claim,
    Reader,
    denies,
    reader,
    taken_back,
    takes_nothing_back,
)
from app.domain.judging.reply_text import BLANK, COMBINING, DENIED, LOST, plain
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


def repaired(first: Verdict, second: Verdict) -> Verdict:
    """Return a follow-up's verdict with the reason why the first reply could not be read."""
    return replace(second, unread=first.unread or Unread.NO_ANSWER)


def parse_verdict(raw: str, asked: Dimension | Scale, *, cut_off: bool = False) -> Verdict:
    """Read a judge's reply by its structure.

    A score is read only from a bare option (``4``, ``4) Moderately open-minded``), one machine format (a JSON field, a tag, a box,
    ``[[4]]``, ``[RESULT] 4``), a labelled line (``Score: 4``) or a statement (``so the answer is 4``). All of them must agree,
    the words of an option must be those of its number, and nothing after the last one may take it back. Everything else is
    ``UNPARSED``: the judge can be asked again, whereas a wrong score is never noticed.

    Args:
        raw: The reply as received. Untrusted, of any length; read in linear time.
        asked: The dimension that the judge was asked about, whose labels a reply may contain, or a rubric's scale, which has none.
        cut_off: Whether the reply may lack its end, which could take a score back. Only a number that no longer number of the
            scale begins with is then read.

    Returns:
        ``SCORED`` with a score on the scale, ``NOT_APPLICABLE`` for the filtering option, ``REFUSED`` if the judge declines to
        judge, else ``UNPARSED`` with the reason.
    """
    scale = asked.scale if isinstance(asked, Dimension) else asked
    readings = _readings(scale)
    if cut_off:
        return _bare_number(after_thoughts(raw), readings)
    at_once = readings.get(raw) or _in_common_form(raw, scale, readings)
    if at_once is not None:
        return at_once
    return _in_few_words(raw, asked) if len(raw) <= _LONGEST_REPEATED else _in_words(raw, asked)


@lru_cache(maxsize=4_096)
def _in_few_words(raw: str, asked: Dimension | Scale) -> Verdict:
    """Remember short replies, such as ``Answer: 4) Moderately open-minded``: a judge sends each of them thousands of times."""
    return _in_words(raw, asked)


def _in_common_form(raw: str, scale: Scale, readings: dict[str, Verdict]) -> Verdict | None:
    """Read ``Score: 4``, ``Therefore, the final score is 4.`` and ``{"score": 4}``, which need none of the rules for words."""
    found = _COMMON_FORM.fullmatch(raw) if len(raw) <= _LONGEST_COMMON_FORM else None
    if found is None or (found[2] and (found[2] != str(scale.maximum) or scale.minimum not in (0, 1))):
        return None
    verdict = readings.get(found[1] or found[3])
    return None if verdict == NOT_APPLICABLE and found[2] else verdict


def _in_words(raw: str, asked: Dimension | Scale) -> Verdict:
    scale = asked.scale if isinstance(asked, Dimension) else asked
    read, readings = reader(asked), _readings(scale)
    text = read.unquoted(plain(raw))
    text = text[opening.end() :] if (opening := OPENING.match(text)) else text
    if not text:
        return unparsed(Unread.EMPTY)
    at_once = _beside_nothing(text, scale, read, readings)
    if at_once is not None:
        return at_once
    before, last = _last_sentence(text)
    before = _without_scale(before, scale)
    if before and read.states_nothing(before) and not _DECLINED.search(before):
        remembered = len(last) <= _LONGEST_REPEATED_SENTENCE
        verdict = _in_common_form(last, scale, readings) or (
            _in_repeated_sentence(last, asked) if remembered else _in_claims(last, asked)
        )
        if (
            verdict.status is VerdictStatus.SCORED
            and read.fits(before, _side_of(verdict, scale))
            and not read.is_on_other(text)
        ):
            return verdict
    return _in_claims(text, asked)


@lru_cache(maxsize=4_096)
def _in_repeated_sentence(text: str, asked: Dimension | Scale) -> Verdict:
    """Remember short last sentences: a judge ends many replies with the same words and one of a few numbers."""
    return _in_claims(text, asked)


def _last_sentence(text: str) -> tuple[str, str]:
    """Split a plain reply before its last sentence, unless a number that begins it may count a list's items."""
    body = text.rstrip(" .!\n")
    at = max(body.rfind(end) for end in (". ", ".\n", "! ", "!\n"))
    last = text[at + 2 :].lstrip()
    counts = last.lstrip("([{'#*")[:1].isdecimal() and len(last) > len("[4].")
    splits = body[max(0, at - 3) : at].isalpha() and not counts
    return (text[: at + 1], last) if at > 0 and splits else ("", text)


def _in_claims(  # noqa: C901, PLR0911 - one return for each reason
    text: str, asked: Dimension | Scale
) -> Verdict:
    scale = asked.scale if isinstance(asked, Dimension) else asked
    read, readings = reader(asked), _readings(scale)
    text = read.rewritten(text)
    if len(text) > 2 * _LONGEST_PART:
        text = f"{text[:_LONGEST_PART]}\n{BLANK}\n{text[-_LONGEST_PART:]}"
    text = _SCALE_PHRASE.sub("", _without_scale(_in_digits(text), scale))
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        return readings.get(whole[1] or whole[2], unparsed(Unread.NO_ANSWER))
    if (LOST in text or COMBINING in text) and _UNREADABLE.search(text):
        return unparsed(Unread.AMBIGUOUS)
    claims = read.claims(text, signed=scale.minimum < 0)
    if not claims:
        option = _ONLY_NOT_APPLICABLE.fullmatch(text.strip(string.punctuation + string.whitespace))
        if option is not None and read.may_lead(option[1]):
            return NOT_APPLICABLE
        refused = not _DIGIT.search(text) and _REFUSAL.match(text.lstrip()) is not None
        return REFUSED if refused else unparsed(Unread.NO_ANSWER)
    numbers = {_NULL_DECIMALS.sub("", claim.number) for claim in claims if claim.number is not None}
    verdicts = {number: readings.get(number) for number in numbers}
    if len(numbers) > 1:
        return unparsed(Unread.CONTRADICTION)
    if not claims[-1].firm or len(claims) > MOST_CLAIMS:
        return unparsed(Unread.AMBIGUOUS)
    verdict = next(iter(verdicts.values()))
    if verdict is None:
        return unparsed(Unread.NO_ANSWER)
    number = scale.not_applicable if verdict.score is None else verdict.score
    if _contradicts(text, number, claims, read, scale):
        return unparsed(Unread.CONTRADICTION)
    if (
        (DENIED in text and verdict.score is not None)
        or _has_other_scale(text, scale)
        or read.is_about_other(text, claims[-1].end)
        or (verdict.score is not None and read.is_on_other(text))
        or _DECLINED.search(text)
        or denies(text, str(number))
        or taken_back(text, claims[-1].end, number, frozenset(readings))
    ):
        return unparsed(Unread.AMBIGUOUS)
    return verdict


def _beside_nothing(text: str, scale: Scale, read: Reader, readings: dict[str, Verdict]) -> Verdict | None:
    """Read a plain reply that is an option, or that begins or ends with one beside a reason that needs no reading."""
    option = read.bare_option(text)
    if option is not None:
        return readings.get(option, unparsed(Unread.NO_ANSWER))
    line = text.find("\n")
    end = read.end_of_option(text) or (line if 0 < line <= _LONGEST_COMMON_FORM else text.find(". "))
    first, behind = text[:end], text[end:]
    verdict = None
    if end > 0 and has_digit(first) and read.states_nothing(behind) and takes_nothing_back(behind):
        whole = behind[0] != "." or read.has_label(first)  # "4. The person …" may be a list's item
        bare = readings.get(read.bare_option(first) or "") if whole else None
        verdict = _in_common_form(first, scale, readings) or bare
    elif line > 0:
        before, _, last = text.rpartition("\n")
        if has_digit(last) and read.states_nothing(before):
            verdict, behind = _in_common_form(last, scale, readings), before
    if verdict is None or _DECLINED.search(text) or read.is_on_other(text):
        return None
    return verdict if read.fits(behind, _side_of(verdict, scale)) else None


def _bare_number(text: str, readings: dict[str, Verdict]) -> Verdict:
    begun = any(number != text and number.startswith(text) for number in readings)
    found = None if begun else readings.get(text)
    return unparsed(Unread.CUT_OFF) if found is None else found


_LONGEST_REPEATED = 60
_LONGEST_REPEATED_SENTENCE = 120
_LONGEST_COMMON_FORM = 80
_COMMON_FORM = re.compile(
    r"[\s*]*(?:(?:therefore|thus|so), )?(?:the )?(?:final |overall )?(?:score|rating|answer)(?:[*]*:| is:?)[\s*]*"
    r"(\d{1,4})(?: ?/ ?(\d{1,4}))?[\s*.]*"
    r"|\s*(?:```(?:json)?\s*)?\{\s*\"(?:final_|overall_)?(?:score|rating)\"\s*:\s*\"?(\d{1,4})\"?\s*\}\s*(?:```)?\s*",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_PART = 5_000
"""A reply states its score at its beginning or its end: characters that are read of either."""
_FIELD = re.compile(r"(?:^|\n)[^\S\n]*[^\W\d][\w ]{1,20}:\s*\Z")
"""Matches the name of a field whose value follows."""
_DIGIT = re.compile(r"\d")
_TO = "(?:-|–|—|~|to|and|through|bis|à|a|al|до)"
_LONGEST_ORDINAL = 40
_NUMERALS = {word: str(n) for n, word in enumerate(WORDS["numerals"], 1)}
_NUMERAL = "|".join(_NUMERALS)
_SPELLED_WORDS = [space + word for word in _NUMERALS for space in " \n"]
_SPELLED_VALUE = re.compile(
    rf"((?:[:=]|\bout of|\b(?:is|an?))\s+)({_NUMERAL})(?= out of (?:\d|{_NUMERAL})\b|\s?(?:[.,;!()\n]|$))"
)
_ORDINAL_OPTIONS = {word: str(n) for n, word in enumerate(WORDS["option_ordinals"], 1)}
_ORDINAL_OPTION = re.compile(
    rf"\s*(?:the )?(?:(\d{{1,2}})(?:st|nd|rd|th)|({'|'.join(_ORDINAL_OPTIONS)})) (?:option|choice)[.!]?\s*"
)
_SCALES, _SCALE_NAMES = one_of([*WORDS["scales"], *WORDS["ranges"]]), one_of(WORDS["scales"])
_ON, _FROM = one_of(WORDS["scale_leads"]), one_of(WORDS["scale_joints"])
_SCALE_LEAD = rf"(?:(?:{_ON} ?)?(?:{_SCALES} ?(?:{_FROM} ?)?{SCALE_MARK}|{SCALE_MARK} ?{_SCALES})|{_ON} {_SCALES})\s?[,:]\s*"
"""Matches a mention of the scale before a number: "On a scale of 1 to 5: 4"."""
_WHOLE = re.compile(
    rf"\s*+(?:{_SCALE_LEAD})?(?:(?:{'|'.join(WORDS['bare_leads'])}|=+>|[-–—]+>|→|⇒)\s+)*(\d{{1,4}})(?:\s+\1){{0,9}}(?:\s(?:{'|'.join(WORDS['units'])}))?[.!]?\s*"
    rf"|\s*+(?:{BLANK}(?=[^\S\n]*\n)\s*+)?answer: (\d{{1,4}})(?=[^\S\n]*\n)\s*+{BLANK}?\s*+"
)
"""Matches a reply that is a number with words around it that add nothing, or one machine format."""
_SCALE_IN_BRACKETS = rf"{one_of(all_words('scores'))} ?[(\[]"
_OTHER_SCALE = re.compile(
    rf"(?:{_SCALE_IN_BRACKETS}[^)\]\n\d]{{0,20}}|{_SCALES}:? (?:[^\W\d]+ ){{0,2}})(\d{{1,3}}) ?(?:\([^()\n]{{1,40}}\) ?)?{_TO} ?(\d{{1,3}})(?!\d)"
    rf"|{_SCALES} {_FROM} [^\W\d]+ {_TO} (\d{{1,3}})(?!\d)"
    rf"|(?<![\d.,])(\d{{1,3}}) ?{_TO} ?(\d{{1,3}})[ -]{_SCALE_NAMES}"
    rf"|{_SCALE_IN_BRACKETS}(?:{OUT_OF} ?(\d{{1,3}}) ?[)\]]|[^)\]\n]{{0,30}}?\b(?:max(?:imum)?\.?:? ?(\d{{1,3}})|(\d{{1,3}}) ?(?:=|is|being)? ?(?:the )?(?:high|best|max)))"
    rf"|\b(?:\d{{1,3}}|({_NUMERAL})|hundred)[ -]points? scale|{_SCALES} (?:\w+ ){{0,2}}(?:one|zero) to (?:({_NUMERAL})|(?:an? |one )?hundred)\b"
    rf"|(?:满分|満分)(?:为|は)? ?\d|\d ?[分点](?:满分|満点)"
)
"""Matches a mention of a scale; the asked one is marked before."""
_SPELLED_SCALES = ("point", "one to", "zero to", *WORDS["points"])
_SCALE_PHRASE = re.compile(
    rf"^[^\S\n]*{_ON} (?:{_SCALES}(?: ?{_FROM} ?{SCALE_MARK})?|{SCALE_MARK} ?{_SCALES})[^\S\n]+(?!{_FROM} )(?=[^\W\d])",
    re.MULTILINE,
)
"""Matches a mention of the scale before a statement: "On a 5-point scale I give this a 4"."""
_NULL_DECIMALS = re.compile(r"\.00?$")
_UNREADABLE = re.compile(rf"{LOST}|\d{COMBINING}")
_ONLY_NOT_APPLICABLE = re.compile(
    rf"((?:[^\W\d]+(?: is)?[\s:]+){{0,4}}?){NOT_APPLICABLE_WORDS}(?: appl(?:ies|y)| fits?)?"
)
_REFUSING: dict[str, list[str]] = WORDS["refusing"]
_DECLINED = re.compile(
    rf"i(?<!\wi)(?:'m| am)? (?:{'|'.join(_REFUSING['to_judge'])}) (?:\w+ ){{0,2}}?(?:{'|'.join(_REFUSING['judging'])})\b"
)
_REFUSAL = re.compile(
    rf"{'|'.join(_REFUSING['openings'])}|"
    r".{0,200}?\bi(?:'m| am| must| have to)? "
    rf"(?:decline\b|(?:{'|'.join(_REFUSING['to_answer'])})"
    rf" (?:\w+ ){{0,2}}?(?:{'|'.join(_REFUSING['answering'])}))",
    re.DOTALL,
)


@lru_cache(maxsize=256)
def _readings(scale: Scale) -> dict[str, Verdict]:
    """Return the verdict of every number that the judge may answer, as it is written."""
    scores = range(scale.minimum, scale.maximum + 1)
    found = {str(score): Verdict(VerdictStatus.SCORED, score) for score in scores}
    if scale.minimum < 0:
        found |= {f"+{score}": Verdict(VerdictStatus.SCORED, score) for score in scores if score > 0}
    return found | {str(scale.not_applicable): NOT_APPLICABLE}


@lru_cache(maxsize=256)
def _scale_patterns(scale: Scale) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what mentions the whole scale ("1 to 5"), and what gives a score out of its maximum ("4/5")."""
    start, end = r"(?<![\w.,/+-])", r"(?![\w/%]|[.,-]\d)"
    low, high = scale.minimum, scale.maximum
    spelled = "|".join(WORDS["spelled_scales"].get(high, ["(?!)"]))
    whole = rf"{spelled}|{start}{low}\s?{_TO}\s?\+?{high}{end}|{start}{high}[ -]points?(?= scale)|(?:满分|満分)(?:为|は)?\s?{high}\s?[分点]?|{start}{high}\s?[分点](?:(?:满分|満分|満点)[中で]?|中)"
    fraction = rf"{start}(\d{{1,9}})(?:\.00?)?\s?(?:分|点|점)?\s?\(?(?:{OUT_OF})\s?{high}(?:\.00?)?\)?(?:\s?(?:分|点|점))?{end}"
    return re.compile(whole), re.compile(fraction)


def _in_digits(text: str) -> str:
    """Write numbers and ordinals in words as digits where a value stands."""
    option = _ORDINAL_OPTION.fullmatch(text) if len(text) <= _LONGEST_ORDINAL else None
    if option is not None:
        return option[1] or _ORDINAL_OPTIONS[option[2]]
    if not has_any(text, _SPELLED_WORDS):
        return text
    found = _SPELLED_VALUE.sub(_digit, text)
    # "four out of five": the second number follows a value only once the first is one.
    return text if found == text else _SPELLED_VALUE.sub(_digit, found)


def _digit(found: re.Match[str]) -> str:
    return found[1] + _NUMERALS[found[2]]


def _without_scale(text: str, scale: Scale) -> str:
    """Mark mentions of the whole scale, and write ``4/5`` as ``4``; both name the maximum."""
    if str(scale.maximum) not in text and not has_any(text, _SPELLED_SCALES):
        return text
    whole, fraction = _scale_patterns(scale)
    text = whole.sub(SCALE_MARK, text)
    if scale.minimum not in (0, 1):
        return text

    def numerator(found: re.Match[str]) -> str:
        return found[1] if _readings(scale).get(found[1], UNPARSED).score is not None else found[0]

    return fraction.sub(numerator, text)


def _has_other_scale(text: str, scale: Scale) -> bool:
    if len(_DIGIT.findall(text)) <= 1 and not has_any(text, _SPELLED_SCALES):
        return False
    limits = str(scale.minimum), str(scale.maximum)
    for found in _OTHER_SCALE.finditer(text):
        *lowest, highest = [limit for limit in found.groups() if limit] or [""]
        if ((lowest or limits)[0], _NUMERALS.get(highest, highest)) != limits:
            return True
    return False


def _contradicts(text: str, number: int, claims: list[Claim], read: Reader, scale: Scale) -> bool:
    """Tell whether the reply names another option by its words, or says of the number what another option says."""
    if len(claims) == 1 and read.names_only(text, number):
        return False
    own = False
    others: list[tuple[int, int]] = []
    for before, option, denied, at in read.mentions(text):
        if before is not None and before != option:
            return True
        if option == number and not denied:
            own = True
        elif option != number and before is not None and not denied:
            return True
        elif option != number and not denied:
            others.append((option, at))
    last = claims[-1].end
    for option, at in others:
        same_line = "\n" not in text[min(at, last) : max(at, last)] or _FIELD.search(text, 0, at) is not None
        if not own and (same_line or _side(option, scale) != _side(number, scale)):
            return True
    side = _side(number, scale)
    if abs(side) == 1 and read.off_topic.is_stated_in(text):
        return True
    return (abs(side) == 1 and read.contradicts(text, side)) or any(
        read.misnames(claim.text, number) for claim in claims if claim.text
    )


def _side_of(verdict: Verdict, scale: Scale) -> int:
    return _side(scale.not_applicable if verdict.score is None else verdict.score, scale)


def _side(option: int, scale: Scale) -> int:
    middle = scale.minimum + scale.maximum
    return 2 if option == scale.not_applicable else (2 * option > middle) - (2 * option < middle)
