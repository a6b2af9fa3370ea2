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
_FIRST_WORD = re.compile(r"[A-Z][a-z]*(?:'[a-z]+)?(?!\w)")


class RoleplaySegmenter(PunktSegmenter):
    """Punkt with rules for role-play and chat.

    An action in asterisks or underscores is never cut. It is a unit of its own where a sentence may begin and end around it, as in
    ``*She smiles.* "Hello there."``, else part of its sentence. A line that starts with a speaker's name starts a unit. Emoji and
    hashtags belong to the sentence that they follow on its line. Words in small letters after a quotation, as in ``"No!" he
    shouts.``, belong to it. A unit without a letter joins the one before it; the number or bullet of a list, and what opens a text,
    join the next if there is one.
    """

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        return _joined(text, _with_marks(text, self._pieces(text)))

    def _pieces(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield Punkt's sentences between the ends that role-play sets; signs inside an action end nothing."""
        hidden = _ACTION.sub(lambda action: re.sub(r"[.?!]", ",", action[0]), text)
        begun = 0
        for end in (*sorted({*_action_ends(text), *_label_starts(text), *self._mark_ends(text)}), len(text)):
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
