"""Sentence segmentation of role-play: actions in asterisks, speaker labels, emoji, hashtags and list numbers."""

import re
from collections.abc import Iterator

from app.domain.instruments.punkt import PunktSegmenter

_ACTION = re.compile(
    r"(?<![\w*])(\*{1,3})(?=[^\s*])[^*\n]*[^\s*]\1(?![\w*])|(?<![\w_])(_{1,2})(?=[^\s_])[^_\n]*[^\s_]\2(?![\w_])"
)
"""Words in asterisks or underscores on one line: an action, or an emphasis."""
_AFTER_END = re.compile(r"(?:\A|\n|[.?!…][\"'”’)\]*]*[ \t]|[\"”][ \t])[ \t]*\Z")
_BEFORE_START = re.compile(r"[ \t]*(?:[\"“'‘*(\[]|[^\W\d_](?<=[^a-zß-öø-ÿ])|\n|\Z)")
_LABEL = re.compile(
    r"^[ \t]*[*_]{0,3}[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}(?:[*_]{0,3}:[*_]{0,3})(?=\s|\Z)", re.MULTILINE
)
"""The name of a speaker at the start of a line."""

_EMOJI = "[\u203c\u2049\u20e3\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\u3030\ufe0f\u200d\U0001f000-\U0001faff\U000e0020-\U000e007f]"
_MARK = rf"(?:{_EMOJI}+|#\w+|[:;=][-']?[()DPp]+(?!\w)|<3)"
_MARKS = re.compile(rf"(?:{_MARK}[ \t]*)+")
"""Emoji, emoticons and hashtags."""
_NOT_WORDS = re.compile(rf"{_MARK}|</?[A-Za-z][^<>\n]*>")
_LETTER = re.compile(r"[^\W\d_]")
_LIST_SIGN = re.compile(r"[ \t]*(?:\(?\d{1,3}[.)]|[-*•–>#]+)[ \t]*\Z")
_LIST_NUMBER = re.compile(
    r"(?:(?<=[.?!…:;\"'”’)\]*_])[ \t]+|^[ \t]*|(?P<loose>[ \t]+))"
    r"(?P<marker>[*_]{0,3}\(?(?P<word>(?(loose)|(?:[A-Z][a-z]+ )?))(?P<number>\d{1,3}|[a-zA-Z]|[ivx]{2,4}|[IVX]{2,4})[.)][*_]{0,3})"
    r"(?=\s+[\"“'*_(]*[^\W\d_](?![.)]))",
    re.MULTILINE,
)
_FIRST_NUMBER = re.compile(r"[.)](?<=[1aAiI][.)])(?<![\w.][1aAiI][.)])")
_ENDS = re.compile(r"[.?!]")
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_FIRST_WORD = re.compile(r"[A-Z][a-z]*(?:'[a-z]+)?(?!\w)")


class RoleplaySegmenter(PunktSegmenter):
    """Punkt with rules for role-play and chat.

    An action in asterisks or underscores is never cut. It is a unit of its own where a sentence may begin and end around it, as in
    ``*She smiles.* "Hello there."``, else part of its sentence. A line that starts with a speaker's name, and a number of a list
    (``1. … 2. …``, ``a) … b) …``, ``Step 1. … Step 2. …``), start a unit. Emoji and
    hashtags belong to the sentence that they follow on its line. Words in small letters after a quotation, as in ``"No!" he
    shouts.``, belong to it. A unit without a letter joins the one before it; the number or bullet of a list, and what opens a text,
    join the next if there is one.
    """

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        return _joined(text, _with_marks(text, self._pieces(text)))

    def _pieces(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield Punkt's sentences between the ends that role-play sets; signs inside an action end nothing."""
        hidden = _ACTION.sub(lambda action: _without_ends(action[0]), text)
        ends = {*_action_ends(text), *_label_starts(text), *self._mark_ends(text)}
        for start, stop in _list_numbers(text):
            hidden = hidden[:start] + _without_ends(text[start:stop]) + hidden[stop:]
            ends -= {*range(start, stop + 1)}
            if text[:start].rstrip(" \t")[-1:] != ":":
                ends.add(start)
        begun = 0
        for end in (*sorted(ends), len(text)):
            for start, stop in super()._spans(hidden[begun:end]):
                yield begun + start, begun + stop
            begun = end

    def _mark_ends(self, text: str) -> Iterator[int]:
        """Yield ends of emoji and hashtags that stand in place of a full stop: a word that begins sentences follows."""
        for marks in _MARKS.finditer(text):
            word = _FIRST_WORD.match(text, marks.end())
            begins = word is not None and word[0].lower() in self._starters and marks[0][-1] in " \t"
            if begins and not _starts_line(text, marks.start()):
                yield marks.end()


def _without_ends(part: str) -> str:
    """Return a text with signs in place of those that end sentences."""
    return _ENDS.sub(",", part)


def _list_numbers(text: str) -> list[tuple[int, int]]:
    """Return the spans of lists' numbers: each list begins with 1, a or i where a sentence may begin, and has a second number.

    The items of a list of three may lack final signs.
    """
    if _FIRST_NUMBER.search(text) is None:  # takes 5 µs, the search for all numbers 100
        return []
    lists: dict[tuple[str, str], list[re.Match[str]]] = {}
    complete: list[list[re.Match[str]]] = []
    for found in _LIST_NUMBER.finditer(text):
        for kind, place in _places(found["number"]):
            key = found["word"], kind
            if place > 1 and key not in lists:  # the word ends the item before
                key = "", kind
            numbers = lists.setdefault(key, [])
            if numbers and place == len(numbers) + 1:
                numbers.append(found)
            elif place == 1 and not found["loose"]:
                complete.append(numbers)
                lists[key] = [found]
    complete += lists.values()
    return [_span(found, numbers[0]) for numbers in complete if _is_list(numbers) for found in numbers]


def _is_list(numbers: list[re.Match[str]]) -> bool:
    return len(numbers) > 2 or (len(numbers) == 2 and not numbers[1]["loose"])  # noqa: PLR2004 - see _list_numbers


def _span(found: re.Match[str], first: re.Match[str]) -> tuple[int, int]:
    start, stop = found.span("marker")
    return start if first["word"] else start + len(found["word"]), stop


def _places(number: str) -> Iterator[tuple[str, int]]:
    """Yield a number's kind and place; ``i`` is a letter and a Roman numeral."""
    if number.isdigit():
        yield "digit", int(number)
        return
    if len(number) == 1:
        yield "letter", ord(number.lower()) - ord("a") + 1
    if number.lower() in _ROMAN:
        yield "roman", _ROMAN.index(number.lower()) + 1


def _action_ends(text: str) -> Iterator[int]:
    """Yield the borders of actions that are units of their own."""
    for action in _ACTION.finditer(text):
        place, inner = action.start(), action[0].strip("*_")
        begins = _AFTER_END.search(text, max(place - 100, 0), place) is not None
        if inner.endswith(":"):
            continue
        ends = inner.rstrip("\"'\u201d")[-1:] in (".", "?", "!", "…") or (
            begins
            and (" " in inner or inner[0].islower())
            and _BEFORE_START.match(text, action.end()) is not None
        )
        if begins and ends:
            yield place
        if ends:
            yield action.end()


def _label_starts(text: str) -> Iterator[int]:
    return (label.start() for label in _LABEL.finditer(text))


def _with_marks(text: str, pieces: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Move marks that open a piece to the sentence before them on their line."""
    held: tuple[int, int] | None = None
    for piece, stop in pieces:
        start = piece + len(text[piece:stop]) - len(text[piece:stop].lstrip())
        if held is not None:
            marks = _MARKS.match(text, start, stop) if not _starts_line(text, start) else None
            if marks is not None and (marks.end() == stop or not text[marks.end()].islower()):
                held, start = (held[0], start + len(marks[0].rstrip())), marks.end()
            yield held
        held = (start, stop) if start < stop else None
    if held is not None:
        yield held


def _joined(text: str, pieces: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join pieces without a letter to the one before; those that open a list item or the text to the next."""
    former: tuple[int, int] | None = None
    held: tuple[int, int] | None = None
    waits = False
    for start, stop in pieces:
        said = held is not None and text[held[1] - 1] in '"\u201d' and text[start].islower()
        wordless = _LETTER.search(_NOT_WORDS.sub("", text[start:stop])) is None
        if held is not None and (waits or said or (wordless and not _opens(text, start, stop))):
            held, waits = (held[0], stop), waits and wordless
            continue
        if former is not None:
            yield former
        former, held, waits = held, (start, stop), wordless
    if former is not None and held is not None and waits:
        former, held = (former[0], held[1]), None
    yield from (each for each in (former, held) if each is not None)


def _starts_line(text: str, place: int) -> bool:
    return text[max(place - 20, 0) : place].rstrip(" \t")[-1:] in ("", "\n")


def _opens(text: str, start: int, stop: int) -> bool:
    """Return whether a piece is the number or bullet of a list item."""
    return (
        _starts_line(text, start)
        and _LIST_SIGN.match(text, start, stop) is not None
        and text[stop : stop + 1] != "\n"
    )
