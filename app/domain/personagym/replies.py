"""Reads the reasoner's replies: lists, environments, questions and example responses.

The prompts ask for a bare Python list, and models answer with prose around it, code fences, either kind of quote, numbered
lines, or half a list. Everything is read as text, nothing is evaluated; what cannot be read is reported, so that the
caller asks again instead of going on with less.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from app.domain.instruments.dimension import Scale
from app.domain.judging.thoughts import after_thoughts
from app.domain.personagym.checks import question_fault
from app.domain.personagym.similarity import jaccard, normalised, shingles
from app.domain.personagym.task import GRADE_SCALE

NEAR_DUPLICATE = 0.7
"""Jaccard similarity of the shingles from which two questions count as the same one reworded.

Measured: one word exchanged in a question of thirteen gives 0.79, one added 0.88; different questions on the same situation
have 0.56, and 0.56 was the most that 1,575 pairs of questions put together from the same 48 sentences reached.
"""
_SHORTEST_QUESTION = 10
_LONGEST_QUESTION = 4000
_SHOWN_CHARACTERS = 160
_MOST_LISTS = 20
"""A reply with more beginnings of lists is no list; the limit also bounds the work on hostile replies."""


@dataclass(frozen=True, slots=True)
class ListRead:
    """A list that a reply holds.

    Attributes:
        items: Its complete, non-empty elements in order, white space collapsed. Untrusted texts.
        cut: Whether the list never ends, so that elements are missing behind them.
    """

    items: tuple[str, ...]
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The environments that a reply selects.

    Attributes:
        chosen: Names as the pool has them, each once, in the reply's order.
        unknown_count: Elements that are in no pool.
        ok: Whether the list could be read to its end and names something of the pool; else ask again.
    """

    chosen: tuple[str, ...]
    unknown_count: int
    ok: bool


@dataclass(frozen=True, slots=True)
class QuestionsRead:
    """The questions that a reply gives.

    Attributes:
        accepted: At most as many as were wanted, each unlike the others and the earlier ones. Untrusted texts.
        missing: How many are still wanted.
        duplicates: Elements left out because an earlier one has the same words.
        near_duplicates: Elements left out because an earlier one has almost the same words.
        unusable: Elements left out because they are no question to the persona.
        surplus: Good elements beyond those wanted.
        readable: Whether the reply holds a list at all.
        faults: Reasons why elements are unusable, each once.
    """

    accepted: tuple[str, ...]
    missing: int
    duplicates: int = 0
    near_duplicates: int = 0
    unusable: int = 0
    surplus: int = 0
    readable: bool = True
    faults: tuple[str, ...] = ()


def beginning(reply: str) -> str:
    """The first 160 characters of a reply, on one line."""
    words = " ".join(reply[: 4 * _SHOWN_CHARACTERS].split())
    cut = len(words) > _SHOWN_CHARACTERS or len(reply) > 4 * _SHOWN_CHARACTERS
    return words[:_SHOWN_CHARACTERS].rstrip() + ("…" if cut else "")


def read_list(reply: str, *, cut: bool = False) -> ListRead | None:
    """The list of texts in a reply.

    A bracketed list of quoted strings wins, wherever it stands; of several the last, since a model that quotes its
    instructions or drafts answers last. Failing that, quoted strings without brackets, numbered lines, or bullets. A
    quotation mark ends a string only where a list goes on or ends behind it, so that apostrophes and unescaped quotes
    within a string stay.

    Args:
        reply: The reply, as the reasoner gave it. Untrusted, of any length.
        cut: Whether the provider said that it stopped for length. Numbered lines do not show it themselves.

    Returns:
        The list, flagged if it is cut; ``None`` where there is none, or where it is cut within its first element.
    """
    text = _answer(reply)
    found = _last_literal(text) or _objects(text)
    if found is None and not _REFUSAL.match(text):
        found = _unbracketed(text, cut) or _lines(text, cut)
    return found


def select_environments(reply: str, pool: Sequence[str], *, cut: bool = False) -> Selection:
    """The environments of the pool that a reply names; case, spaces and punctuation do not count.

    Args:
        reply: The reasoner's reply. Untrusted.
        pool: The names that were offered.
        cut: Whether the provider said that the reply stopped for length.
    """
    found = read_list(reply, cut=cut)
    if found is None:
        return Selection((), 0, ok=False)
    known = {normalised(name): name for name in reversed(pool)}
    names = [known.get(normalised(item)) for item in found.items]
    chosen = tuple(dict.fromkeys(name for name in names if name is not None))
    return Selection(chosen, names.count(None), ok=bool(chosen) and not found.cut)


def read_questions(
    reply: str, wanted: int, already: Iterable[str] = (), *, cut: bool = False
) -> QuestionsRead:
    """The questions in a reply that are new.

    Two questions are duplicates if their words are the same, and near-duplicates if the Jaccard similarity of their
    three-character shingles is at least :data:`NEAR_DUPLICATE`.

    Args:
        reply: The reasoner's reply. Untrusted.
        wanted: How many questions it was asked for.
        already: The questions that there are.
        cut: Whether the provider said that the reply stopped for length.
    """
    found = read_list(reply, cut=cut)
    if found is None:
        return QuestionsRead((), wanted, readable=False)
    words = {normalised(question) for question in already}
    sets = [shingles(question) for question in words]
    accepted: list[str] = []
    duplicates = near_duplicates = 0
    faults: list[str] = []
    for item in found.items:
        plain = normalised(item)
        if fault := _fault(item):
            faults.append(fault)
        elif plain in words:
            duplicates += 1
        elif any(jaccard(shingles(plain), other) >= NEAR_DUPLICATE for other in sets):
            near_duplicates += 1
        else:
            accepted.append(item)
            words.add(plain)
            sets.append(shingles(plain))
    kept = tuple(accepted[:wanted])
    return QuestionsRead(
        kept,
        wanted - len(kept),
        duplicates,
        near_duplicates,
        len(faults),
        len(accepted) - len(kept),
        faults=tuple(dict.fromkeys(faults)),
    )


def _fault(item: str) -> str | None:
    if _SHORTEST_QUESTION <= len(item) <= _LONGEST_QUESTION:
        return question_fault(item)
    return f"is shorter than {_SHORTEST_QUESTION} or longer than {_LONGEST_QUESTION:,} characters"


def read_exemplars(reply: str, *, scale: Scale = GRADE_SCALE, cut: bool = False) -> Mapping[int, str] | None:
    """The example responses in a reply, one for each score.

    Args:
        reply: The reasoner's reply, in the form ``Score 1: Response - …``, marked up or not, or a JSON object.
        scale: The rubric's scores.
        cut: Whether the provider said that the reply stopped for length: then no example is known to be complete.

    Returns:
        The examples by score, or ``None`` for a broken set: a score that is missing, given twice or outside the scale, an
        example without words, or two that are the same.
    """
    if cut:
        return None
    text = _RULE.sub("", _answer(reply))
    wanted = list(range(scale.minimum, scale.maximum + 1))
    for found in (_keyed(text), _headed(text, _HEADER), _headed(text, _INLINE_HEADER)):
        examples = {score: _example(body) for score, body in found}
        complete = sorted(score for score, _ in found) == wanted
        if complete and len({normalised(body) for body in examples.values()} - {""}) == len(wanted):
            return dict(sorted(examples.items()))
    return None


_REFUSAL = re.compile(
    r"\W*(?:i(?:'|’)?m (?:very |really |so )?sorry|i am (?:very |really |so )?sorry|sorry|i apologi[sz]e|(?:my )?apologies|"
    r"i (?:cannot|can not|can(?:'|’)t|won(?:'|’)t|will not|must decline|am unable|am not able)|i(?:'|’)m (?:unable|not able))\b",
    re.IGNORECASE,
)
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`", "„": "“", "«": "»"}
_QUOTES = "".join(_CLOSING)
_COMMENTS = r"(?:#[^\n]*\n\s*)*"
_LIST_START = re.compile(rf"\[\s*{_COMMENTS}(?=[{_QUOTES}\]])")
_OBJECTS_START = re.compile(r"\[\s*\{")
_TEXT_KEYS = ("question", "environment", "persona", "description", "text", "name")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_NUMBERED = re.compile(r"\s*[*_#]*(?:q(?:uestion)?\s*)?\d{1,3}[.):][*_]*\s+(\S.*)", re.IGNORECASE)
_BULLET = re.compile(r"\s*[-*•–]\s+(\S.*)")

_NUMBER_OF_SCORE = r"score\s*=?\s*(\d{1,3})(?:[ \t]*\([^)\n]{0,80}\))?"
_RESPONSE = r"""[\s*_"'`]*(?:example\s+)?response(?:\s+\d)?[\s*_]*[-–—:]"""
_HEADER = re.compile(
    rf"""^[ \t>*_#"'`(\[-]*(?:{_NUMBER_OF_SCORE}[ \t*_"'`)\]]*(?:[:=.–—-]|$)|(\d{{1,3}})[.):](?={_RESPONSE}))""",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE_HEADER = re.compile(rf"\b{_NUMBER_OF_SCORE}[ \t*_]*[:–—-](?={_RESPONSE})()", re.IGNORECASE)
_RESPONSE_LABEL = re.compile(rf"{_RESPONSE}", re.IGNORECASE)
_RULE = re.compile(r"^[ \t]*(?:[-—–_=*]{3,}[ \t]*|```.*)$", re.MULTILINE)
_CLOSING_REMARK = re.compile(
    r"\n\s*\n\W*(?:note\b|these (?:examples|responses)|i hope|let me know|feel free|would you like)(?s:.*)",
    re.IGNORECASE,
)
_SCORE_KEY = re.compile(r"\s*(?:score)?[\s_=]*(\d{1,3})\s*", re.IGNORECASE)


def _answer(reply: str) -> str:
    """What follows a reasoning model's thoughts, without characters that cannot be stored."""
    return after_thoughts(reply).replace("\0", "").encode(errors="ignore").decode().strip()


def _last_literal(text: str) -> ListRead | None:
    """The last bracketed list of strings; an empty one only where there is no other."""
    last: ListRead | None = None
    position = 0
    for _ in range(_MOST_LISTS):
        start = _LIST_START.search(text, position)
        if start is None:
            break
        found, position = _read_literal(text, start.end())
        if found is not None and (found.items or last is None):
            last = found
    return last


def _read_literal(text: str, position: int) -> tuple[ListRead | None, int]:
    """Reads quoted strings up to the closing bracket.

    Args:
        text: The reply.
        position: Where the first string's quotation mark, or the closing bracket, stands.

    Returns:
        The list, ``None`` if not even its first string ends, and where to read on.
    """
    items: list[str] = []
    start = position
    while position < len(text) and text[position] != "]":
        end = _string_end(text[position]).search(text, position + 1)
        if end is None:
            return (ListRead(_kept(items), cut=True), len(text)) if items else (None, start)
        items.append(_unescaped(text[position + 1 : end.start()]))
        position = end.end()
    return ListRead(_kept(items), cut=position >= len(text)), position + 1


@cache
def _string_end(opening: str) -> re.Pattern[str]:
    """A string's closing quotation mark and what separates it from the next string, the bracket or the reply's end."""
    goes_on = rf"\s*,\s*{_COMMENTS}(?=[{_QUOTES}\]]|$)|[^\S\n]*\n\s*(?=[{_QUOTES}])"
    return re.compile(rf"(?<!\\){_CLOSING[opening]}(?:{goes_on}|\s*{_COMMENTS}(?=\])|\s*(?:```\s*)?\Z)")


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])

    # Surrogate pairs are two escapes; half of one is no character.
    joined = _ESCAPE.sub(character, text).encode("utf-16-le", "surrogatepass")
    return joined.decode("utf-16-le", "ignore").replace("\0", "")


def _kept(items: Iterable[str]) -> tuple[str, ...]:
    collapsed = (" ".join(item.split()) for item in items)
    return tuple(item for item in collapsed if item)


def _objects(text: str) -> ListRead | None:
    """A JSON list of objects that have one text each, such as ``[{"question": "…"}]``."""
    start = _OBJECTS_START.search(text)
    content = _json_at(text, start.start()) if start else None
    if not isinstance(content, list):
        return None
    return ListRead(_kept(found for member in content if (found := _text_of(member)) is not None))


def _text_of(member: object) -> str | None:
    if not isinstance(member, dict):
        return member if isinstance(member, str) else None
    texts = {str(key).casefold(): value for key, value in member.items() if isinstance(value, str)}
    return next((texts[key] for key in _TEXT_KEYS if key in texts), None)


def _json_at(text: str, position: int) -> object:
    """The JSON value that begins at a position; ``None`` where there is none."""
    try:
        value: object = json.JSONDecoder().raw_decode(text, position)[0]
    except (ValueError, RecursionError):
        return None
    return value


def _unbracketed(text: str, cut: bool) -> ListRead | None:
    """Quoted strings and nothing else, as in a list that lost its brackets."""
    if not text or text[0] not in _CLOSING or text.rstrip(",")[-1:] != _CLOSING[text[0]]:
        return None
    found, _ = _read_literal(text.rstrip(",") + "]", 0)
    return ListRead(found.items, cut) if found else None


def _lines(text: str, cut: bool) -> ListRead | None:
    """Numbered lines, or bullets where there are none, with the lines that go on with them."""
    for form in (_NUMBERED, _BULLET):
        items: list[str] = []
        open_item = False
        for line in text.splitlines():
            match = form.match(line)
            if match:
                items.append(_undecorated(match[1]))
            elif open_item and line.strip():
                items[-1] = f"{items[-1]} {line}"
            open_item = bool(items) and bool(line.strip())
        if items:
            return ListRead(_kept(items[:-1] if cut else items), cut)
    return None


def _undecorated(item: str) -> str:
    """A line's text without bold type, a trailing comma and the quotation marks around it."""
    text = item.strip().removesuffix(",").replace("**", "")
    quoted = len(text) > 1 and text[0] in _CLOSING and text[-1] == _CLOSING[text[0]]
    return text[1:-1] if quoted else text


def _headed(text: str, header: re.Pattern[str]) -> list[tuple[int, str]]:
    """Scores and what stands behind their headings, in the reply's order."""
    headings = list(header.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)][: len(headings)]
    return [
        (int(heading[1] or heading[2]), text[heading.end() : end])
        for heading, end in zip(headings, ends, strict=True)
    ]


def _keyed(text: str) -> list[tuple[int, str]]:
    """The members of a JSON object whose names are scores."""
    content = _json_at(text, text.find("{")) if "{" in text else None
    return list(_members(content)) if isinstance(content, dict) else []


def _members(content: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    for key, value in content.items():
        score = _SCORE_KEY.fullmatch(key)
        body = value.get("response") if isinstance(value, dict) else value
        if score and isinstance(body, str):
            yield int(score[1]), body


def _example(body: str) -> str:
    label = _RESPONSE_LABEL.match(body)
    text = _CLOSING_REMARK.sub("", body[label.end() if label else 0 :]).strip().strip("*_").strip()
    quoted = len(text) > 1 and text[0] in _CLOSING and text[-1] == _CLOSING[text[0]]
    return text[1:-1].strip() if quoted else text
