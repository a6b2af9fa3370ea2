"""Reads a judge's reply about several sentences: every line by its own number, so that no line can shift another."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.phrases import WORDS, has_digit, whole_words
from app.domain.judging.reply_claims import (
    AFTER_UNIT_NUMBER,
    JUDGED_UNIT,
    Reader,
    leads_elsewhere,
    reader,
    taken_back,
)
from app.domain.judging.reply_text import FOREIGN, unquoted_lines
from app.domain.judging.thoughts import after_thoughts
from app.domain.judging.verdict import REFUSED, Unread, Verdict, VerdictStatus, parse_verdict, unparsed

USABLE = frozenset({VerdictStatus.SCORED, VerdictStatus.NOT_APPLICABLE})

_LABEL = re.compile(
    r"""(?:^|[,;|{])[ \t*_`"'>(\[#•-]{0,20}(?:\{?[ \t]*["']\w+["']\s*:\s*["']|sentence )?"""
    rf"""{JUDGED_UNIT}[ ]?(\d{{1,4}}){AFTER_UNIT_NUMBER}"""
    r"""[*_`"')\]>]*[ \t]*"""
    r"""(?:[:\uff1a]|=>?|->|→|\||,\s*["']\w+["']\s*:|[.)–—-](?=\s)|(?=[ \t][+-]?\d+[ \t]*$))""",
    re.MULTILINE | re.IGNORECASE,
)
"""A sentence's number as an answer begins with it: at the beginning of a line, or after what ends another answer."""
_BARE_LINE = re.compile(r"[*_`]*(\d{1,4})[*_`]*[ \t]*(?:[:=|)]|\.(?!\d)|->|→)[ \t]*(\S.*)")
"""An answer whose sentence's number lacks its "S": an option's number and its text look the same. "1.5" is no sentence's."""
_LINE = re.compile(r"\S.*")
_IN_A_ROW = re.compile(r"S ?(\d{1,4})[ \t]*(?::|=>?|->|→)[ \t]*([+-]?\d+)(?:[ \t]+|$)", re.IGNORECASE)
"""An answer of a reply that is nothing but sentences' numbers with bare scores, all on one line with blanks between them."""
_LIST = re.compile(
    r"""([^\d\[{]{1,80}[:\uff1a]\s*)?(?:```\w*\s*)?(?:\{\s*(?:["']\w+["']\s*:\s*["'][^"'\n]{1,40}["']\s*,\s*)?["'](\w+)["']\s*:\s*)?\[([\s\d,"'+\[\]-]{1,1000})\]"""
)
"""A list of scores, alone or as an object's first field, or as its second one behind the trait's name."""
_NO_SCORES = re.compile("|".join([FOREIGN.pattern, *WORDS["no_scores"]]))
"""Names of lists that are not scores."""
_LIMIT = re.compile(r"""["'](?:max|min|scale|count)\w*["']\s*:\s*\d+""", re.IGNORECASE)
"""A field behind a list that limits the scores."""
_OBJECTS = re.compile(r"\s*(?:```\w*\s*)?\[\s*\{")
_OBJECT = re.compile(r"\{[^{}]{1,1000}\}")
_OBJECT_LABEL = re.compile(
    r"""["'](?:sentence[_ ]?)?(?:id|index|no|unit|sentence)["']\s*:\s*["']?(?:S ?|sentence )?(\d{1,4})\b""",
    re.IGNORECASE,
)
"""An object's field that names a sentence."""
_FIELD = re.compile(r"""["']\w+["']\s*:""")
_LISTED = re.compile(r"[+-]?\d+")
_DIGITS = re.compile(r"\d{1,9}")
_ANSWER_WITHIN = re.compile(r"\bS ?\d{1,4}\s?[:=]\s?\d", re.IGNORECASE)
_AROUND = " \t\r\n,;|{}"
_LEADS = WORDS["group_leads"]
_LEAD_NAME = re.compile(whole_words(word for words in _LEADS["names"].values() for word in words))
_LEAD_WORD = re.compile(
    whole_words(word for kind in ("names", "words") for words in _LEADS[kind].values() for word in words)
)
_DISOWNING = re.compile(whole_words(_LEADS["disowning"]))
_NO_NAME = re.compile(rf"(?:{whole_words(WORDS['assents'])}|s)\W*")
"""Matches an assent, and a sentence's label without its number."""
_OPEN_FIELDS = re.compile(r"""(?:["'][^"'\n:]{1,60}["']\s*:[{\[\s]*)+$""")
"""Matches the fields in whose values the scores lie."""
_FIRST_FIELDS = re.compile(r"""[{\[\s]*(?:["'](?!S ?\d)[^"'\n:]{1,60}["']\s*:\s*[{\[]\s*)+""")
"""Matches the fields that open before a line's first label."""
_FIELD_NAME = re.compile(r"""["']([^"'\n:]{1,60})["']\s*:""")
_SIDE_FIELD = re.compile(
    rf"""["'](?:{"|".join(WORDS["side_fields"])})["']\s*:\s*\[[^\[\]{{}}]*\]""", re.IGNORECASE
)
"""Matches a list of the judge's confidence behind the scores."""
_SIGNS = " \t\r\n*_`#>|[{(=-"
_SENTENCE_LABELS = re.compile(r"\bs ?\d{1,4}(?:\s?[:=]\s?\d\b)?")
_LONGEST_HEADING = 60
_LONGEST_LEAD = 200
_LONGEST_LEADS = 2_000
_PROSE_ENDS = frozenset('.!"\u3002\uff01')


class _Part(NamedTuple):
    """A part of a reply: the sentence's number, what is answered, both as they stand there, and where they begin."""

    label: int
    answer: str
    raw: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class GroupedReading:
    """What a reply says about one sentence.

    Attributes:
        verdict: The verdict, where it is ``SCORED`` or ``NOT_APPLICABLE``; any other means that the sentence has to be
            asked about alone.
        raw: The part of the reply that is about the sentence; ``None`` where there is none.
    """

    verdict: Verdict
    raw: str | None = None

    @property
    def usable(self) -> bool:
        """Whether the verdict can stand."""
        return self.verdict.status in USABLE


def read_grouped(
    raw: str,
    count: int,
    asked: Dimension | Scale,
    *,
    cut_off: bool = False,
    labels: Sequence[int] | None = None,
) -> list[GroupedReading]:
    """Reads a reply about ``count`` sentences, which were labelled S1, S2 and so on.

    What follows a label, up to the next one, is read as strictly as the reply about a single sentence. A sentence whose
    label is missing, stands twice or is followed by no plain answer has no usable reading; the others keep theirs. A
    label that was not given (S0, or one too many) says that the judge counted otherwise: then nothing can be used.
    Answers without labels are used only where the lines are numbered as the sentences are, without a gap.

    Args:
        raw: The reply, as the judge gave it. Untrusted, of any length; read in linear time.
        count: How many sentences it was asked about.
        asked: The dimension or scale that it was asked about.
        cut_off: Whether the reply ended at a limit: what it says last may lack its last digit.
        labels: The numbers of the sentences that a follow-up asked about; ``None`` for all. Its reply may repeat all
            of them, but not only others: then the judge has numbered anew.

    Returns:
        A reading for each of these sentences, in their order. Where nothing can be used, the first one has the whole reply.
    """
    text = after_thoughts(raw)
    text = unquoted_lines(text) if ">" in text else text
    everyone = range(1, count + 1)
    labels = everyone if labels is None else labels
    found = (
        _in_a_row(text)
        or _objects(text)
        or _labelled(text)
        or _numbered(text, labels)
        or _listed(text, labels)
    )
    before = text[: found[0].start] if found else ""
    if _counts(found, asked) or (before and (leads_elsewhere(before) or _names_others(before, asked))):
        found = []
    if not found and len(labels) == 1:
        return [GroupedReading(parse_verdict(raw, asked, cut_off=cut_off), raw)]
    parts: dict[int, list[_Part]] = {}
    for part in found[:-1] if cut_off else found:
        parts.setdefault(part.label, []).append(part)
    readings = [_reading(parts.get(label, []), asked) for label in labels]
    is_known = parts.keys() <= set(labels) or {part.label for part in found} == set(everyone)
    read = reader(asked)
    if found and any(
        taken_back(remark, 0, 0, frozenset()) or read.is_about_other(remark)
        for remark in _remarks(text, found[-1])
    ):
        return unusable(raw, len(labels), unparsed(Unread.AMBIGUOUS))
    if is_known and any(reading.usable for reading in readings):
        return readings
    refused = parse_verdict(raw, asked) == REFUSED
    reason = Unread.CUT_OFF if cut_off else Unread.NO_ANSWER
    return unusable(raw, len(labels), REFUSED if refused else unparsed(reason))


def read_part(raw: str, asked: Dimension | Scale) -> Verdict:
    """Read a sentence's part of an earlier reply (:attr:`GroupedReading.raw`) again.

    Args:
        raw: The part with its label, or a number of a list.
        asked: The dimension or scale that the judge was asked about.
    """
    answer = raw
    if (row := _IN_A_ROW.fullmatch(raw)) is not None:
        answer = row[2]
    elif (label := _LABEL.match(raw)) is not None:
        answer = raw[label.end() :].strip(_AROUND)
    elif (line := _BARE_LINE.fullmatch(raw)) is not None:
        answer = line[2]
    return _reading([_Part(0, answer, raw)], asked).verdict


def label_of_part(raw: str) -> int | None:
    """Return the number of a sentence's part (:attr:`GroupedReading.raw`); ``None`` if it is missing or not the only one."""
    parts = _in_a_row(raw) or _labelled(raw)
    return parts[0].label if len(parts) == 1 and parts[0].raw == raw else None


def unusable(raw: str | None, count: int, verdict: Verdict) -> list[GroupedReading]:
    """The readings of a reply, or of a call without one, that says nothing of any sentence."""
    return [GroupedReading(verdict, raw if n == 0 else None) for n in range(count)]


def _remarks(text: str, part: _Part) -> Iterator[str]:
    """Yield the lines behind the last part's first one, and a last paragraph, that may concern all scores."""
    behind = text[part.start :].strip(_AROUND).partition("\n")[2].lower()
    for line in behind.split("\n"):
        if line.strip() and line.lstrip()[0] not in "\"'{}[],":
            yield line
    last = text.rpartition("\n\n")[2] if "\n\n" in text else ""
    if "\n" in last and _LABEL.match(last) is None and part.raw != last.strip(_AROUND):
        yield last.lower()


def _names_others(before: str, asked: Dimension | Scale) -> bool:
    """Tell whether the fields or the line before scores name anything but scores of the asked trait."""
    read = reader(asked)
    before = read.unquoted(before.lower())
    if read.is_about_other(before) or read.is_on_other(before):
        return True
    scale = asked.scale if isinstance(asked, Dimension) else asked
    limits = {abs(scale.minimum), scale.maximum, scale.not_applicable}
    fields = _OPEN_FIELDS.search(before[-_LONGEST_LEAD:])
    if fields is not None:
        if not all(_is_lead(name.replace("_", " "), read, limits) for name in _FIELD_NAME.findall(fields[0])):
            return True
        before = before[: len(before) - len(fields[0])]
    lines = (line.strip() for line in reversed(before[-_LONGEST_LEADS:].split("\n")))
    lines = (line.rpartition("```")[0] or line for line in lines if line[:3] != "```")
    for n, line in enumerate(islice((line for line in lines if any(map(str.isalpha, line))), 2)):
        words = line.strip(_SIGNS)
        is_heading = words.endswith((":", "\uff1a")) or line[:1] in {"#", "*", "_", "|"}
        if is_heading or (n == 0 and len(words) <= _LONGEST_HEADING and words[-1:] not in _PROSE_ENDS):
            if not (_NO_NAME.fullmatch(words) or _is_lead(words, read, limits, with_name=n == 0)):
                return True
        elif _DISOWNING.search(words[-2 * _LONGEST_LEAD :]):
            return True
    return False


def _is_lead(words: str, read: Reader, limits: set[int], *, with_name: bool = True) -> bool:
    """Tell whether a name or a line consists of a score's name and words of a closed vocabulary."""
    words = words.lower().replace("’", "'").strip(_SIGNS + ":\uff1a")
    if len(words) > _LONGEST_LEAD:
        return False
    if read.is_name(words) and not any(map(str.isdigit, words)):
        return True
    rest = _SENTENCE_LABELS.sub(" ", words)
    rest = read.any_label.sub(" ", rest) if read.has_label(rest) else rest
    if not {int(digits) for digits in _DIGITS.findall(rest)} <= limits:
        return False
    cells = [cell.strip() for cell in rest.split("|")]
    others = [cell for cell in cells if not read.is_name(cell)]
    named = (
        not with_name
        or len(others) < len(cells)
        or _LEAD_NAME.search(rest) is not None
        or read.trait.search(rest) is not None
    )
    rest = read.trait.sub(" ", _LEAD_WORD.sub(" ", " ".join(others)))
    return named and not any(map(str.isalpha, rest))


def _in_a_row(text: str) -> list[_Part]:
    """The answers of a single line that holds nothing else; nothing where anything else is on it."""
    found: list[_Part] = []
    end = 0
    while (answer := _IN_A_ROW.match(text, end)) is not None:
        found.append(_Part(int(answer[1]), answer[2], answer[0].strip(), answer.start()))
        end = answer.end()
    return found if end == len(text) else []


def _objects(text: str) -> list[_Part]:
    """Return the objects of a list in which each names its sentence."""
    objects = list(_OBJECT.finditer(text)) if _OBJECTS.match(text) else []
    found = [
        _Part(int(label[1]), each[0], each[0], each.start())
        for each in objects
        if (label := _OBJECT_LABEL.search(each[0])) is not None
    ]
    return found if len(found) == len(objects) else []


def _labelled(text: str) -> list[_Part]:
    """What follows each label, up to the next one."""
    found = [label for label in _LABEL.finditer(text) if not _is_quoted(text, label.start())]
    ends = [*(label.start() for label in found[1:]), len(text)]
    if len(found) > 1 and "\n\n" not in text[found[0].start() : found[-1].start()]:
        closing = text.find("\n\n", found[-1].end())  # a remark about all sentences
        ends[-1] = closing if closing >= 0 else len(text)
    return [
        _Part(
            int(label[1]),
            text[label.end() : end].strip(_AROUND),
            text[label.start() : end].strip(_AROUND),
            label.start(),
        )
        for label, end in zip(found, ends, strict=False)  # without a label there is one end too many
    ]


def _is_quoted(text: str, start: int) -> bool:
    """Tell whether a label behind a comma stands in a quotation, which begins in the same line's prose."""
    if text[start] not in ",;":
        return False
    line = text[text.rfind("\n", 0, start) + 1 : start]
    fields = _FIRST_FIELDS.match(line)
    line = line[fields.end() :] if fields else line
    return _LABEL.match(line) is None and _OPENED.search(line) is not None


_OPENED = re.compile(r"\w[^\n]*\s[\"'“‘«]S ?\d", re.IGNORECASE)


def _counts(parts: list[_Part], asked: Dimension | Scale) -> bool:
    """Tell whether the numbers behind the labels count the sentences, which the reply repeats."""
    return len(parts) > 1 and all(
        re.match(rf"{part.label}[.)]\s+[^\W\d]", part.answer)
        and parse_verdict(part.answer, asked).status not in USABLE
        for part in parts
    )


def _numbered(text: str, labels: Sequence[int]) -> list[_Part]:
    """Lines that are numbered as the sentences are; nothing if a line among or a number behind them says otherwise."""
    count = len(labels)
    lines = list(_LINE.finditer(text))
    if lines and not has_digit(lines[0][0]) and not _NO_SCORES.match(lines[0][0].lower()):
        del lines[0]  # what it says is checked with what stands before any scores
    found = [
        _Part(int(line[1]), line[2].rstrip(), line[0].rstrip(), line.start())
        for line in (_BARE_LINE.match(text, each.start(), each.end()) for each in lines[:count])
        if line
    ]
    in_order = [part.label for part in found] == list(labels)
    behind = text[lines[count - 1].end() :] if len(lines) >= count else ""
    return [] if any(map(str.isdigit, behind)) or not in_order else found


def _listed(text: str, labels: Sequence[int]) -> list[_Part]:
    """Return the numbers of a list that has one for each sentence, with no other number behind it."""
    found = _LIST.match(text)
    numbers = _LISTED.findall(found[3]) if found else []
    if (
        found is None
        or leads_elsewhere(found[1] or "")
        or any(name and _NO_SCORES.match(name.lstrip().lower()) for name in (found[1], found[2]))
        or (len(numbers) > 2 and numbers == list(map(str, labels)))  # noqa: PLR2004 - they may count the sentences
        or len(numbers) != len(labels)
        or any(map(str.isdigit, _SIDE_FIELD.sub("", _LIMIT.sub("", text[found.end() :]))))
    ):
        return []
    return [_Part(n, number, number, found.start(3)) for n, number in zip(labels, numbers, strict=True)]


def _reading(parts: list[_Part], asked: Dimension | Scale) -> GroupedReading:
    if len(parts) != 1 or _ANSWER_WITHIN.search(parts[0].answer):
        return GroupedReading(
            unparsed(Unread.CONTRADICTION if parts else Unread.NO_ANSWER),
            "\n".join(part.raw for part in parts) or None,
        )
    answer = parts[0].answer
    if answer[:1].isdigit():
        answer = f"Answer: {answer}"
    elif _FIELD.match(answer):
        answer = f"{{{answer}}}"  # the braces were taken for what is around an answer
    return GroupedReading(parse_verdict(answer, asked), parts[0].raw)
