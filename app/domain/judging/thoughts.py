"""Separates a reply's answer from thoughts, wrappers and end tokens that a server left in its text.

The forms are data (``thoughts.yaml``). A tag counts as mark-up only where it stands as one: a persona that writes about tags, in
quotation marks, in backticks or within a sentence, keeps its text.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

VERSION = "thoughts-v1"
MAX_CHARACTERS = 600_000
"""Longest reply that is split, about 130,000 tokens; any longer one is far too long to be judged, or read as a verdict."""

_FORMS: Any = yaml.safe_load(files(__package__).joinpath("thoughts.yaml").read_text("utf-8"))


class Reply(NamedTuple):
    """A reply in its two parts.

    Attributes:
        thoughts: Everything beside the answer, without tags; ``None`` if the reply contains none.
        answer: The answer; empty if the model only thought.
    """

    thoughts: str | None
    answer: str


class _Mark(NamedTuple):
    """A form's name and the mark's part in it: ``open``, ``close`` or ``end``."""

    form: str
    part: str


def split_thoughts(text: str) -> Reply:
    """Return the thoughts and the answer of a reply.

    Args:
        text: The reply's text. Untrusted; read in linear time, and only up to :data:`MAX_CHARACTERS`.
    """
    if text.isdigit():  # a judge's usual reply
        return Reply(None, text)
    # Every mark contains one of these, and few texts do; the check takes 1 µs, the search for marks 30.
    marked = "<" in text or "&lt;" in text or "think|" in text or "▷" in text or "\uff1c" in text
    marked = marked or (("[" in text or "/" in text) and _BRACKETS.search(text) is not None)
    marked = marked or "\nUser:" in text or "\nUSER:" in text or "\nHuman:" in text or "\n### " in text
    spoken = (text.lstrip() if text[:1].isspace() else text)[:_LONGEST_PHRASE].lower()
    phrased = spoken.startswith(_PHRASE_STARTS)
    labelled = spoken.lstrip("#*\u3010 ").startswith(_LABEL_STARTS)
    label = _LABEL.match(text) if labelled else None
    led = spoken.startswith(_ROLE_LINES)
    if len(text) > MAX_CHARACTERS or not (marked or phrased or label or led):
        return Reply(None, text)
    if phrased and (phrase := _PHRASE.match(text)):
        found = _between_phrases(text, phrase)
        if found is not None or not (marked or led):
            return found or Reply(None, text)
    if label is not None and (answer := _ANSWER_LABEL.search(text, label.end())):
        return _between(text[label.end() : answer.start()], text[answer.end() :])
    whole, text = text, _without_cut_token(text)
    start = _START.match(text)
    rest = text[start.end() :] if start else text
    if _HARMONY.match(rest) or _HARMONY_LATER.search(rest):
        return _harmony(rest)
    reply = _without_label(_unwrapped(_Tagged(rest).read()))
    return Reply(None, whole) if not reply.answer and _ONLY_PAIR.fullmatch(rest) else reply


def after_thoughts(text: str) -> str:
    """Return the answer of a judge or a reasoner without surrounding white space."""
    return split_thoughts(text).answer.strip()


def first_turn(answer: str) -> str:
    """Return what precedes the first special token of a judge's or a reasoner's answer, without those that open it."""
    if "<" not in answer and "[" not in answer:
        return answer
    first = _FIRST_TOKENS.match(answer)
    return _ANY_TOKEN.split(answer[first.end() :] if first else answer, maxsplit=1)[0]


class _Tagged:
    """Reads the marks of a text in their order; thoughts are removed from wherever they stand as a block of their own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._thoughts: list[str] = []
        self._answer: list[str] = []
        self._begin = 0
        """Start of the part that is being read."""
        self._block = ""
        """Form of the block that the part belongs to; empty outside of blocks."""
        self._opened_at = self._before = 0
        """Start of the block, 0 if no text precedes it, and of the part before it."""
        self._within: set[str] = set()
        """Forms whose opening marks stand within the block."""
        self._other_close: re.Match[str] | None = None
        """First closing mark within the block of a form that is not opened in it."""
        self._mentioned = Counter[str]()
        """Opening marks, by form, that are part of the text."""
        self._has_text = False
        """Whether the answer has any text before the part."""
        self._first = _after_space(text, 0)
        """The part's first character other than white space."""

    def read(self) -> Reply:
        """Return the text in its two parts."""
        is_over = self._read_marks(0)
        if self._block and self._other_close is not None:  # at most once: the rest is read again
            other = self._other_close
            self._close(other)
            is_over = self._read_marks(other.end())
        if is_over:
            return self._reply()
        rest = self._text[self._begin :]
        if self._block:
            wrapped = _unwrapped(Reply(None, rest), within_thoughts=True)
            self._thoughts.append(wrapped.thoughts or _before_end_token(rest))
            rest = wrapped.answer if wrapped.thoughts else ""
        elif not self._begin:
            return Reply(None, self._text)
        self._answer.append(rest)
        return self._reply()

    def _read_marks(self, position: int) -> bool:
        """Read the marks from a position on; return whether the answer ends at one."""
        for found in _MARK.finditer(self._text, position):
            mark = _mark_of(found)
            if mark is None:
                if found["name"]:
                    self._mentioned[found["name"].lower()] += 1
            elif not _is_mention(self._text, found) and self._ends_at(found, mark):
                return True
        return False

    def _ends_at(self, found: re.Match[str], mark: _Mark) -> bool:
        """Take a mark into account; return whether the answer ends at it."""
        if found.start() < self._begin:
            return False  # the answer's turn is opened anew behind the thoughts
        if self._block:
            if mark == (self._block, "close") or found[0].lower() in _CLOSES.get(self._block, ()):
                self._close(found)
            elif mark.part == "open":
                self._within.add(mark.form)
            elif mark.part == "close" and self._other_close is None:
                is_paired = mark.form in self._within or self._mentioned[mark.form]
                self._other_close = None if is_paired else found
        elif mark.part == "open":
            self._open(found, mark.form)
        elif mark.part == "close":
            self._close_unopened(found, mark.form)
        elif _is_block_end(self._text, found) and not _is_opened(self._text, found):
            self._answer.append(self._part(found).rstrip())
            return True
        return False

    def _part(self, found: re.Match[str]) -> str:
        return self._text[self._begin : found.start()]

    def _is_first(self, found: re.Match[str]) -> bool:
        """Return whether nothing of the answer precedes a mark."""
        return self._first == found.start() and not self._has_text

    def _open(self, found: re.Match[str], form: str) -> None:
        first = self._is_first(found)
        if self._first != found.start() and not _starts_block(self._text, found.start()):
            self._mentioned[form] += 1
            return
        self._answer.append(self._part(found))
        self._has_text |= self._first < found.start()
        self._before, self._begin, self._block = self._begin, found.end(), form
        self._opened_at = 0 if first else found.start()

    def _close(self, found: re.Match[str]) -> None:
        self._block = ""
        self._within.clear()
        self._other_close = None
        if self._opened_at and not _ends_block(self._text, found, self._opened_at):
            self._answer.pop()  # a pair within a sentence is part of the text
            self._begin = self._before
        else:
            self._thoughts.append(self._part(found))
            self._next_part(found)

    def _close_unopened(self, found: re.Match[str], form: str) -> None:
        """Make everything so far thoughts: the opening tag stands in the prompt's template."""
        if form in _PAIRED:
            return
        if self._mentioned[form]:
            self._mentioned[form] -= 1
        elif self._is_first(found) or _is_block_end(self._text, found):
            self._thoughts.append("".join((*self._answer, self._part(found))))
            self._answer.clear()
            self._mentioned.clear()
            self._has_text = False
            self._next_part(found)

    def _next_part(self, found: re.Match[str]) -> None:
        opening = _TURN_START.match(self._text, found.end())
        self._begin = opening.end() if opening else found.end()
        self._first = _after_space(self._text, self._begin)

    def _reply(self) -> Reply:
        return _reply(self._thoughts, _joined(self._answer))


def _after_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return position if found is None else found.end()


def _joined(parts: Sequence[str]) -> str:
    """Join what stood around removed blocks; the answer's own white space at its end stays."""
    full = [part for part in parts if part.strip()]
    if not full:
        return ""
    last = full[-1].lstrip() if parts[-1].strip() else full[-1].strip()
    return "\n\n".join((*(part.strip() for part in full[:-1]), last))


def _starts_block(text: str, position: int) -> bool:
    """Return whether a tag begins a line or follows a finished sentence."""
    return _FINISHED.search(text, max(0, position - 40), position) is not None


def _ends_block(text: str, found: re.Match[str], opened_at: int) -> bool:
    own_line = text[opened_at - 1] == "\n" and not text[found.end() : found.end() + 1].isspace()
    return _CONTINUES.match(text, found.end()) is None or (
        own_line and text[found.end() : found.end() + 1].isalpha()
    )


def _is_block_end(text: str, found: re.Match[str]) -> bool:
    """Return whether a mark is one by its surroundings: after a finished sentence, or not within one."""
    return (
        found[0][0] == "\n"
        or _CONTINUES.match(text, found.end()) is None
        or _starts_block(text, found.start())
    )


def _is_mention(text: str, found: re.Match[str]) -> bool:
    """Return whether a mark stands in quotation marks or backticks."""
    closing = _QUOTES.get(text[found.start() - 1]) if found.start() else None
    return closing is not None and text.startswith(closing, found.end())


def _is_opened(text: str, found: re.Match[str]) -> bool:
    """Return whether an end token is a closing tag of the text itself, as ``</s>`` after ``<s>``."""
    opened_by = _OPENED_BY.get(found[0].lower())
    return opened_by is not None and opened_by in text[max(0, found.start() - 500) : found.start()].lower()


def _before_end_token(thoughts: str) -> str:
    found = _END.search(thoughts)
    return thoughts[: found.start()] if found else thoughts


def _without_cut_token(text: str) -> str:
    """Remove an end token at the end of a text whose own end is missing, as ``<|im_end``."""
    place = max(text.rfind("<", -_LONGEST_END), text.rfind("[", -_LONGEST_END))
    tail = text[place:].rstrip().lower() if place >= 0 else ""
    if len(tail) < _SHORTEST_CUT and tail not in ("<|", "</"):
        return text
    is_cut = _CUT_TOKEN.fullmatch(tail) or any(end.startswith(tail) and end != tail for end in _ENDS)
    return text[:place].rstrip() if is_cut else text


def _without_label(reply: Reply) -> Reply:
    """Remove a label before an answer that follows thoughts, as ``**Final Answer:**``."""
    label = _ANSWER_LABEL.match(reply.answer.lstrip()) if reply.thoughts else None
    return reply if label is None else reply._replace(answer=reply.answer.lstrip()[label.end() :].lstrip())


def _unwrapped(reply: Reply, *, within_thoughts: bool = False) -> Reply:
    """Take an answer out of its wrapper; what stands beside it joins the thoughts.

    Within thoughts that are not closed, a wrapper that opens ends them.
    """
    start = _START.match(reply.answer)
    answer = reply.answer[start.end() :] if start else reply.answer
    if "<" not in answer and "/" not in answer:
        return reply._replace(answer=answer)
    opening = closing = None
    for found in _WRAPPER.finditer(answer):
        mark = _wrapper_of(found)
        if mark is None or _is_mention(answer, found):
            continue
        if mark.part == "open" and opening is None:
            if answer[: found.start()].strip() and not _starts_block(answer, found.start()):
                return reply._replace(answer=answer)
            opening = found, mark.form
        elif mark.part != "open" and (opening is None or mark.form == opening[1]):
            closing = found
            break
    begin = opening[0].end() if opening else 0
    before, after = (
        answer[: opening[0].start()] if opening else "",
        answer[closing.end() :] if closing else "",
    )
    if (opening is None and closing is None) or (before.strip() and closing is None and not within_thoughts):
        return reply._replace(answer=answer)
    if after.strip() and (
        opening is None or before.strip()
    ):  # two of three parts outside: no wrapper of an answer
        return reply._replace(answer=answer)
    inner = answer[begin : closing.start() if closing else len(answer)].strip()
    return _reply([reply.thoughts or "", before, after], inner)


def _harmony(text: str) -> Reply:
    """Read the channels of Harmony and its relatives; only what is addressed to the user is the answer."""
    thoughts: list[str] = []
    answer: list[str] = []
    headers = [*_HEADER.finditer(text)]
    if not headers:
        return _Tagged(text).read()
    if headers[0].start():
        thoughts.append(_without_tokens(text[: headers[0].start()]))
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        said = text[header.end() : following.start() if following else len(text)]
        body = _HARMONY_END.split(said, maxsplit=1)[0]
        channel = (header["channel"] or header["recipient"] or header["bare"] or "final").lower()
        (answer if channel in _TO_USER else thoughts).append(body)
    return _reply(thoughts, "".join(answer).strip())


def _without_tokens(text: str) -> str:
    return _HARMONY_END.sub("", text)


def _between_phrases(text: str, phrase: re.Match[str]) -> Reply | None:
    """Return a reply whose thoughts stand between phrases; ``None`` if the second one is missing."""
    form = _PHRASES[phrase[1].lower()]
    places = [(place, close) for close in form["close"] if (place := text.find(close, phrase.end())) >= 0]
    if not places:
        return _reply([text[phrase.end() :]], "") if form.get("cut_off") else None
    place, close = min(places)
    return _between(text[phrase.end() : place], text[place + len(close) :])


def _between(thoughts: str, rest: str) -> Reply:
    read = _unwrapped(_Tagged(rest).read())
    return _reply([thoughts, read.thoughts or ""], read.answer.strip())


def _reply(thoughts: Sequence[str], answer: str) -> Reply:
    return Reply("\n\n".join(said for part in thoughts if (said := part.strip())) or None, answer)


def _mark_of(found: re.Match[str]) -> _Mark | None:
    """Return the form of a mark; ``None`` for a tag that neither encloses thoughts nor ends the turn."""
    if found["literal"] is not None:
        literal: _Mark = _LITERALS[found["literal"].lower()]
        return literal
    name = (found["name"] or found["bracketed"]).lower()
    mark = _of_thoughts(name, bool(found["slash"] or found["bracket_slash"]))
    if mark is None:
        words = {*_words(name)}
        ends = not words.isdisjoint(_TURN_WORDS) or (found["slash"] and words <= _FILLERS)
        return _Mark(name, "end") if ends and (found["bar"] or "\u2581" in name) else None
    return mark if mark.part == "close" or _is_opening(found, name) else None


def _is_opening(found: re.Match[str], name: str) -> bool:
    """Return whether what a tag of this name needs beside it is there."""
    text = found.string
    if found["bracketed"]:
        return _is_closed(found)
    if found[0][0] == "\uff1c":  # brackets around a heading
        return text.find(f"/{found['name']}", found.end(), found.end() + _FARTHEST) >= 0
    if name == "summary":
        return "<details" not in text[max(0, found.start() - 200) : found.start()].lower()
    needed = _ATTRIBUTES.get(name)
    attributes = (found["attributes"] or "").strip().lower()
    if needed is None:  # <think about it> are words
        return not attributes or "=" in attributes
    summary = _SUMMARY.match(text, found.end())
    title = summary[1].lower() if summary else ""
    return any(word in attributes or title.startswith(word) for word in needed)


def _is_closed(found: re.Match[str]) -> bool:
    """Return whether a name in brackets has its closing mark: ``[thinking]`` alone is a stage direction."""
    closing = f"{found['bracket'][0]}/{found['bracketed']}"
    return found.string.find(closing, found.end(), found.end() + _FARTHEST) >= 0


def _wrapper_of(found: re.Match[str]) -> _Mark | None:
    """Return the part of a tag in the wrapper of an answer; ``None`` for other tags."""
    if found["literal"] is not None:
        literal: _Mark = _LITERALS[found["literal"].lower()]
        return literal
    slash = found["slash"] or found["bracket_slash"]
    if found["bracketed"] and not slash and not _is_closed(found):
        return None
    words, closes = _without_side((found["name"] or found["bracketed"]).lower())
    answers = words <= _ANSWER_WORDS | _FILLERS and not words.isdisjoint(_ANSWER_WORDS)
    return _Mark(" ".join(sorted(words)), "close" if closes or slash else "open") if answers else None


@lru_cache(4096)
def _of_thoughts(name: str, slash: bool) -> _Mark | None:
    """Return the part of a tag in a block of thoughts, by its name or a word of it."""
    words, closes = _without_side(name)
    if name not in _NAMES and words.isdisjoint(_THOUGHT_WORDS):
        return None
    form = name if name in _NAMES else " ".join(sorted(words))
    return _Mark(form, "close" if closes or slash else "open")


def _without_side(name: str) -> tuple[frozenset[str], bool]:
    """Return the words of a tag's name without ``begin`` or ``end``, and whether it had ``end``."""
    found: set[str] = set()
    for word in _words(name):
        side = next((each for each in _SIDES if word.startswith(each)), "")
        rest = word[len(side) :]
        found |= {side, rest} if side and (not rest or rest in _THOUGHT_WORDS | _ANSWER_WORDS) else {word}
    return frozenset(found - _BEGIN_WORDS - _END_WORDS - {""}), not found.isdisjoint(_END_WORDS)


def _words(name: str) -> list[str]:
    return _NOT_LETTERS.split(name)


def _literals(kind: str) -> Iterator[tuple[str, _Mark]]:
    for form in _FORMS[kind]:
        if "open" in form:
            yield form["open"].lower(), _Mark(form["open"], "open")
            yield from ((close.lower(), _Mark(form["open"], "close")) for close in form["close"])


def _any(words: Sequence[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)) or r"(?!)"


def _marks(literals: Sequence[str]) -> re.Pattern[str]:
    """Match literal marks and tags of any name."""
    return re.compile(
        rf"(?P<literal>{_any(literals)})"
        r"|(?:\\?<|&lt;|\uff1c)(?P<bar>[|\uff5c]?) ?(?P<slash>/?) ?[|\uff5c]?(?P<name>(?:[^\W\d]|\u2581)[\w:.|\u2581-]{0,48}?)"
        r"(?P<attributes>\s[^<>]{0,300})? ?[|\uff5c]?(?:\\?>|&gt;|\uff1e)"
        r"|(?P<bracket>[\[(\u00ab]|\{{1,2})(?P<bracket_slash>/?)(?P<bracketed>[^\W\d_][\w -]{2,30})(?:[\])\u00bb]|\}{1,2})",
        re.IGNORECASE,
    )


def _listed(kind: str) -> frozenset[str]:
    return frozenset(_FORMS["words"][kind])


_THOUGHT_WORDS, _ANSWER_WORDS, _FILLERS, _TURN_WORDS = map(
    _listed, ("thoughts", "answers", "fillers", "turns")
)
_BEGIN_WORDS, _END_WORDS = _listed("begins"), _listed("ends")
_SIDES = (*_BEGIN_WORDS, *_END_WORDS)
_NOT_LETTERS = re.compile(r"[\W_]+")
_SUMMARY = re.compile(r"\s{0,9}<summary>[^\w<]{0,9}([^<]{0,200})</summary>", re.IGNORECASE)
_NAMES = frozenset(form["tag"] for form in _FORMS["thoughts"] if "tag" in form)
_ENDS = {form["token"].lower(): _Mark(form["token"], "end") for form in _FORMS["ends"]}
_OPENED_BY = {
    form["token"].lower(): form["opened_by"].lower() for form in _FORMS["ends"] if "opened_by" in form
}
_THOUGHTS, _WRAPPERS = dict(_literals("thoughts")), dict(_literals("wrappers"))
_CLOSES = {form["open"]: {*map(str.lower, form["close"])} for form in _FORMS["thoughts"] if "open" in form}
_PAIRED = {form["open"] for form in _FORMS["thoughts"] if form.get("paired")}
"""Forms whose closing mark alone means something else, as an arrow."""
_TAG_ENDS = {f"</{form['tag']}>" for form in _FORMS["thoughts"] if "tag" in form}
_LITERALS = _WRAPPERS | _THOUGHTS | _ENDS
"""A token that ends a turn is no stray closing mark, though it closes a block that is open."""
_FARTHEST = 20_000
"""Characters within which a tag is looked for that must be closed: each opening one is followed by a search."""
_ATTRIBUTES = {form["tag"]: form["attribute"] for form in _FORMS["thoughts"] if "attribute" in form}
_MARK = _marks([mark for mark in (*_THOUGHTS, *_ENDS) if mark not in _TAG_ENDS])
_WRAPPER = _marks([*_WRAPPERS])
_END = re.compile(_any([*_ENDS]), re.IGNORECASE)
_LONGEST_END, _SHORTEST_CUT = max(map(len, _ENDS)) + 4, 3
_CUT_TOKEN = re.compile(r"<[|\uff5c][\w\u2581]{0,40}[|\uff5c]?")
_ECHOED = "|".join(
    rf"{re.escape(form['open'])}[\s\S]{{0,{_FARTHEST}}}?{re.escape(form['close'])}"
    for form in _FORMS["echoes"]
)
_START = re.compile(rf"\s*(?:(?:{_any([form['token'] for form in _FORMS['starts']])}|{_ECHOED})\s*)+")
_TURN_START = re.compile(
    rf"\s*(?:(?:{_any([form['token'] for form in _FORMS['starts'] if form['token'][0] in '<['])})\s*)+"
)
_ANY_TOKEN = re.compile(
    rf"<[|\uff5c][^<>|\uff5c\n]{{1,40}}[|\uff5c]>|{_any([form['token'] for form in (*_FORMS['ends'], *_FORMS['starts'])])}",
    re.IGNORECASE,
)
_FIRST_TOKENS = re.compile(
    rf"(?:\s*(?:{_ANY_TOKEN.pattern})\s*(?:(?:assistant|model)\b\s*)?)+", re.IGNORECASE
)
_PHRASES = {form["open"].strip().lower(): form for form in _FORMS["phrases"]}
_PHRASE = re.compile(rf"\s*({_any([*_PHRASES])})", re.IGNORECASE)
_PHRASE_STARTS, _LONGEST_PHRASE = tuple(_PHRASES), max(map(len, _PHRASES))
_ROLE_LINES = tuple({form["token"].lower() for form in _FORMS["starts"] if form["token"].endswith("\n")})
_ONLY_PAIR = re.compile(
    rf"\s*<({_any([form['tag'] for form in _FORMS['thoughts'] if form.get('beside_answer')])})>.*</\1>\s*",
    re.IGNORECASE | re.DOTALL,
)
_BRACKETS = re.compile(
    rf"\[(?:{_any([mark[1:] for mark in (*_THOUGHTS, *_ENDS) if mark[0] == '['])})|[\[({{\u00ab]/[\w -]{{0,30}}(?:{_any([*_THOUGHT_WORDS])})[\w -]{{0,30}}[\])}}\u00bb]|\[/?[A-Z_]{{2,20}}\Z",
    re.IGNORECASE,
)


def _label(kind: str) -> str:
    """Match a label before the thoughts or the answer: ``**Thinking:**``, ``## Response``, ``Final answer:``."""
    words = rf"(?:{_any(_FORMS['labels'][kind])})"
    return rf"(?:\#{{1,6}} ?(?:\*\*)?{words}:?(?:\*\*)?[^\S\n]*\n|\*\*{words}(?::\*\*|\*\*:?)|\u3010{words}\u3011|{words}[:\uff1a])[^\S\n]*"


_LABEL_STARTS = tuple(_FORMS["labels"]["thoughts"])
_LABEL = re.compile(rf"\s{{0,20}}{_label('thoughts')}", re.IGNORECASE)
_ANSWER_LABEL = re.compile(rf"^{_label('answers')}", re.IGNORECASE | re.MULTILINE)
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "*": "*"}
_SPACE = re.compile(r"\s*")
_FINISHED = re.compile(r"(?:^|\n|[.!?…。\uff01\uff1f\"”’»」*)}\]])\s*\Z")
_CONTINUES = re.compile(r"[^\S\n]{1,20}[a-zà-öø-ÿа-яё]|[^\S\n]{0,20}[.,;:!?)\]'’]")
"""What follows a tag that is mentioned within a sentence: a small letter, or a sentence's punctuation."""
_HARMONY = re.compile(
    r"\s*(?:assistant\s*)?<\|(?:channel|start)\|>|\s*(?:assistant )?to=\w+<\|message\|>|\s*(?:analysis|final|commentary)\s*<\|message\|>",
    re.IGNORECASE,
)
_HARMONY_LATER = re.compile(
    r"<\|(?:end|eom)\|>\s*(?:<\|start\|>\s*)?assistant\s*(?:<\|channel\|>|to=)|<\|start\|>assistant\s*<\|channel\|>final",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(?:<\|start\|>\s{0,9})?(?:\bassistant\b\s{0,9})?"
    r"(?:<\|channel\|>\s{0,9}(?P<channel>analysis|final|commentary|\w{1,40})[^<\n]{0,200}(?:<\|constrain\|>[^<]{0,200})?<\|message\|>"
    r"|<\|channel\|>\s{0,9}(?P<bare>analysis|final|commentary)"
    r"|to=(?P<recipient>\w+)<\|message\|>|(?<=assistant)<\|message\|>)",
    re.IGNORECASE,
)
_HARMONY_END = re.compile(r"<\|(?:end|return|call|start|eom|eot|channel)\|>")
_TO_USER = {"final", "user"}


_TOKEN = re.compile(
    r"<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]?>|<[^<>|\uff5c\n]{1,40}[|\uff5c]>|<[A-Za-z]{3,}_?\d+>|\u25c1[^\u25b7\n]{1,40}\u25b7"
    rf"|{_any([form['token'] for form in _FORMS['ends'] if form['token'].startswith(('[', '<<'))])}"
)
_OPENING = re.compile(
    r"\s*(?:<(?P<tag>[^\W\d][\w:.-]{0,39})(?:\s[^<>\n]{0,300})?>|(?P<bracket>[\[({\u00ab])(?P<name>[^\W\d][\w -]{2,39})[\])}\u00bb])"
)
_OPENED = re.compile(r"<([^\W\d][\w:.-]{0,39})")
_CLOSING = re.compile(r"</([^\W\d][\w:.-]{0,39})>")
_FORMATTING = frozenset(_FORMS["formatting"])
MOST_UNKNOWN = 3


def unknown_marks(answer: str) -> tuple[str, ...]:
    """Return unknown tags and special tokens of an answer, at most :data:`MOST_UNKNOWN`.

    These are tokens such as ``<|name|>`` anywhere, a tag with its closing tag or on its own line at the start, and a closing tag
    without an opening one. Tags that format text, as in HTML, are known.
    """
    if "<" not in answer and "\u25c1" not in answer and "[" not in answer and "/" not in answer:
        return ()
    found = [token for token in _TOKEN.finditer(answer) if not _is_mention(answer, token)]
    opening = _OPENING.match(answer)
    if opening is not None and (opening["tag"] or opening["name"]).lower() not in _FORMATTING:
        closing = f"{opening['bracket'] or '<'}/{opening['tag'] or opening['name']}"
        own_line = opening["tag"] and answer[opening.end() : opening.end() + 1] == "\n"
        if own_line or closing in answer:
            found.append(opening)
    if "</" in answer:
        known = {*_FORMATTING, *map(str.lower, _OPENED.findall(answer))}
        found += [
            tag
            for tag in _CLOSING.finditer(answer)
            if tag[1].lower() not in known and not _is_mention(answer, tag) and _is_block_end(answer, tag)
        ]
    return tuple(dict.fromkeys(mark[0].strip() for mark in found))[:MOST_UNKNOWN]
