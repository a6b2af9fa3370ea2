"""Rewrites a judge's reply so that every form of an answer becomes a labelled line and nothing else looks like one.

A JSON field, a tag, a box, ``[[4]]`` and ``[RESULT] 4`` become ``answer: 4``. Quotations and other fields and tags are blanked.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from app.domain.judging.phrases import WORDS, one_of
from app.domain.judging.thoughts import after_thoughts, first_turn

LOST = "\0"
"""Replaces a character with a numeric value that is no digit, such as ½, ④ or ²."""
DENIED = "\1"
"""Replaces a field that denies the score beside it."""
COMBINING = "\u0336"
"""Replaces any combining character: after a digit it may strike the digit out."""
BLANK = "▒"
"""Replaces text that is not the judge's own."""

IsName = Callable[[str], bool]
"""Tells whether a field or tag is named like a score, or like another one than the asked score."""
IsValue = Callable[[str], bool]
"""Tells whether a text is an answer and nothing else."""

_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\u20e3\ufeff\r"
_REPLACED = {
    "’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "「": '"', "」": '"', "『": '"', "』": '"',
    "−": "-", "⇒": "->", "➜": "->", "➡": "->", "►": " ", "▶": " ", "。": ". ", "、": ", ", "【": "[", "】": "]", "؛": ";", "،": ",",
    **dict.fromkeys(_INVISIBLE, ""),
}  # fmt: skip


_REFUSING = "❌❎✖✗✘🚫⛔👎"
FOREIGN = re.compile("|".join(WORDS["foreign"]))

_SPACES = re.compile(r"[^\S\n]{2,}|\t")


def plain(raw: str) -> str:
    """Return the answer's turn without thoughts, in lower case, with plain digits, quotes and signs."""
    text = first_turn(after_thoughts(raw).rpartition("</think>")[2])
    if not text.isascii():
        text = _SPACED_QUOTES.sub("", text) if "»" in text else text
        if "「" not in text:  # the end of a quotation whose start is cut off
            text = text.replace("」", "」 ")
        text = "".join(map(_plain_character, _in_plain_digits(_UNIT_POWER.sub("", text))))
    text = text.lower().strip()
    spaced = "  " in text or "\t" in text or "\r" in text or not text.isascii()
    return _SPACES.sub(" ", text) if spaced else text


_SPACED_QUOTES = re.compile(r"(?<=«)\s|\s(?=»(?:[\s.,;:!?)]|$))")
"""Matches the spaces within French quotation marks."""
_UNIT_POWER = re.compile(r"(?<=[^\W\d_])[²³⁰¹⁴-⁹₀-₉]+")
_CIRCLED = re.compile(r"[①-⑩❶-❿➀-➓](?=(\s?[^\W\d])?)")


def _in_plain_digits(text: str) -> str:
    """Write a circled number as an option's number; several of them count the items of a list and stay."""
    if len({found[0] for found in _CIRCLED.finditer(text)}) != 1:
        return text
    return _CIRCLED.sub(
        lambda found: f"{unicodedata.numeric(found[0]):.0f}" + (")" if found[1] else ""), text
    )


def _plain_character(character: str) -> str:
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if "\uff01" <= character <= "\uff5e":  # full-width forms of ASCII
        return chr(ord(character) - 0xFEE0)
    if character in _REPLACED:
        return _REPLACED[character]
    if unicodedata.category(character) == "So":  # emoji and other signs
        return LOST if character in _REFUSING else ""
    if character.isnumeric() and not character.isalpha():
        return LOST
    return COMBINING if unicodedata.combining(character) else character


def labelled(text: str, is_name: IsName, is_value: IsValue, is_told: IsValue, is_other: IsName) -> str:
    """Rewrite a plain reply; see above. Works in linear time."""
    text = _without_fence(text) if "```" in text or "~~~" in text else text
    text = unquoted_lines(text) if ">" in text else text
    text = _RULE.sub("", text) if "|" in text else text
    text = _HEADINGS.sub("\n", text) if "#" in text else text
    text = spelled_out(text) if "." in text else text
    text = _RULED_OUT.sub("", text) if sum(map(text.count, "0123456789")) > 1 else text
    text = _calls(text, is_name) if "<" in text else text
    text = _json(text, is_name, is_value, is_told, is_other) if "{" in text and ":" in text else text
    text = _tags(text, is_name) if "<" in text else text
    text = with_denials(text, is_name) if ":" in text else text
    text = _DECLARED.sub(r"\1\2", text) if '"' in text else text
    text = _quotations(text, is_value) if '"' in text or "'" in text else text
    if "\\" in text or "$" in text:
        text = _LATEX_TEXT.sub(r"\1", text)
        text = _LATEX_NUMBER.sub(lambda found: f" {found[1] or found[2] or found[3]} ", text)
    if ":" in text and _CONTINUED_LINE.search(text):
        items = set(_LIST_ITEM.findall(text))
        text = _CONTINUED_LINE.sub(lambda m: m[0] if _is_list(m[1], items, is_value) else ": " + m[1], text)
    text = _BOX.sub(r"\nanswer: \1\n", text) if "\\" in text else text
    if "[" in text or "<<" in text:
        text = _DOUBLE_BRACKETS.sub(lambda found: f"\nanswer: {found[1] or found[2]}\n", text)
        text = _END_MARK.sub("", text)
        text = _BRACKETED_NAME.sub(lambda m: f"\n{m[1]}: " if is_name(m[1]) else m[0], text)
    text = _STARS.sub("", text) if "*" in text else text
    return text.replace("`", "").replace('"', "").replace("_", " ")


def spelled_out(text: str) -> str:
    """Write abbreviations of "for example" as a name before a colon."""
    for word in WORDS["such_as"]:
        if word in text:
            text = text.replace(word, "example:")
    return text


_RULED_OUT = re.compile(one_of(WORDS["ruled_out"]))
_RULE = re.compile(
    r"^[^\S\n]*\|[^\S\n:|-]*-[^\S\n:|-]*(?:\n|$)|^[^\S\n]*\|[ :|-]+\|[^\S\n]*(?:\n|$)", re.MULTILINE
)
"""Matches the line below a table's head."""
_HEADINGS = re.compile(r"(?<=\S)[^\S\n]+#{2,6}[^\S\n]*(?=[^\W\d])")
"""Matches the sign of a heading within a line."""
_FENCE = re.compile(r"^\s*(?:```|~~~)[\w-]*[^\S\n]*$", re.MULTILINE)
_SHOWN_FENCE = re.compile(r"```[^`]{0,400}```(?=\s*(?:is|are|was|were|stands?|appears?)\b)")
"""Matches a block that a sentence continues: the judge shows it and does not answer in it."""
_CODE = re.compile(
    r"```(?!(?:json|text|txt|markdown|md|yaml|xml|html|plaintext|plain|output|answer|score)\b)[a-z+#]+[^\S\n]*\n(?=[^\n]*\n(?!```))[^`]*```"
)
"""Matches a block of several lines in a programming language: a correction of the judged text."""
_DECLARED = re.compile(
    r'(\bi(?:\'d|\'ll| would| will)? (?:rate|score|grade|give)[^":\n.]{0,80}:\s*)"([^"\n]{1,30})"'
)
"""Matches what the judge quotes as its own answer."""
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|textit|mathbf|mathrm)\s?\{([^{}\n]{0,80})\}")
_LATEX_NUMBER = re.compile(
    r"\$\$?\s?([+-]?\d+(?:\.0)?(?:\s?/\s?\d+)?)\s?\$\$?|\\\(\s?([+-]?\d+(?:\.0)?)\s?\\\)|\\\[\s?([+-]?\d+(?:\.0)?)\s?\\\]"
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{([^{}\n]{0,80})\}\$?")
_DOUBLE_BRACKETS = re.compile(r"\[\[([^\[\]\n]{1,80})\]\]|<<<?([^<>\n]{1,80})>?>>")
_END_MARK = re.compile(r"\[(?:/[a-z]{1,12}|end|eos|done|stop)\]")
_BRACKETED_NAME = re.compile(r"\[([^\W\d][\w ]{2,30})\][*:]*\s*(?=\S)")
_CONTINUED_LINE = re.compile(r":[*_]*[^\S\n]*\n\s*(?![-•*]\s)([^\n]*)")
_LIST_ITEM = re.compile(r"^[^\S\n]*[*_]*(\d{1,2})[.)][^\S\n]+[*_]*[^\W\d]", re.MULTILINE)
_STARS = re.compile(r"\*(?!(?<=\d\*)\d)")
"""Matches stars, but not a multiplication."""


def _is_list(line: str, items: set[str], is_value: IsValue) -> bool:
    """Tell whether a line below a heading begins a list, and does not continue the heading by an option."""
    item = _LIST_ITEM.match(line)
    return item is not None and (item[1] == "1" or len(items) > 1) and not is_value(line)


def _without_fence(text: str) -> str:
    return _FENCE.sub("", _CODE.sub(BLANK, _SHOWN_FENCE.sub(BLANK, text))).strip()


_QUOTED_LINE = re.compile(r"^[^\S\n]*>(?:[^\S\n]|$).*$", re.MULTILINE)


def unquoted_lines(text: str) -> str:
    """Strip the signs of a block quotation if it is the whole reply, else blank the quoted lines."""
    lines = [line for line in text.split("\n") if line.strip()]
    if all(_QUOTED_LINE.match(line) for line in lines):
        return "\n".join(line.lstrip()[1:].strip() for line in lines)
    return _QUOTED_LINE.sub(BLANK, text)


_CLOSED_ONLY = re.compile(
    r"""^[^"\n]*[^"\s]"(?=[\s.,;)]|$)(?![^\n]*")|^[^'\n]*[.!?\d]'(?=\s|$)(?![^\n]*')""", re.MULTILINE
)
"""Matches the end of a quotation that begins before the line."""
_SINGLE_QUOTED = re.compile(r"(?<![\w'])'(?=\S)((?:[^']|(?<=\w)'(?=\w)){1,300})'(?!\w)")


def _quotations(text: str, is_value: IsValue) -> str:
    """Blank what the judge quotes, except for a bare answer and for a reply that is quoted as a whole."""
    for sign in "\"'":
        if text[:1] == text[-1:] == sign and text.count(sign) == 2:  # noqa: PLR2004 - one pair
            return text[1:-1]

    def kept(content: str) -> str:
        return f" {content} " if is_value(content) else BLANK

    text = _SINGLE_QUOTED.sub(lambda found: kept(found[1]), text) if "'" in text else text
    text = _CLOSED_ONLY.sub(BLANK, text)
    parts = text.split('"')
    quoted = "".join(part if n % 2 == 0 else kept(part) for n, part in enumerate(parts))
    if len(parts) % 2:
        return quoted
    before, unpaired = "".join(p if n % 2 == 0 else kept(p) for n, p in enumerate(parts[:-1])), parts[-1]
    quotation, newline, rest = unpaired.partition("\n\n")
    return before + (quotation if is_value(quotation) else BLANK) + newline + rest


_ARGUMENT = re.compile(r"""<parameter(?:=| name=["'])([\w-]{1,40})["']?>([^<]{0,2000})</parameter>""")
_CALL = re.compile(
    r"</?(?:tool_calls?|function_calls?|tool_use|function|invoke)(?:(?:=| name=)[^<>\n]{1,60})?>"
)

_ANGLED = re.compile(r"(?<!<)<(\d{1,4})>(?!>)")


def _calls(text: str, is_name: IsName) -> str:
    """Replace the tags of a tool call by its arguments, and ``<4>`` by its number."""
    text = _ARGUMENT.sub(lambda m: f"\nanswer: {m[2].strip()}\n" if is_name(m[1]) else BLANK, text)
    return _ANGLED.sub(r" \1 ", _CALL.sub("\n", text))


_VALUE_TAG = re.compile(r"""<([a-z][\w -]{0,30}) value=["']?(\d{1,4})["']?\s*/?>""")
_TAG = re.compile(r"<(/?)([a-z][\w -]{0,30})>")


def _tags(text: str, is_name: IsName) -> str:
    """Unwrap tags that are named like a score and blank the content of others that begin a line."""
    text = _VALUE_TAG.sub(lambda found: f"\nanswer: {found[2]}\n" if is_name(found[1]) else found[0], text)
    parts: list[str] = []
    end, closing = 0, ""
    tags = list(_TAG.finditer(text))
    last_end = {tag[2]: tag.start() for tag in tags if tag[1]}
    for tag in tags:
        if closing:
            if tag[1] and tag[2] == closing:
                parts.append(BLANK)
                end, closing = tag.end(), ""
            continue
        if is_name(tag[2]):
            quoted = text[tag.start() - 1 : tag.start()] in {'"', "'"} or text[tag.end() : tag.end() + 1] in {
                '"',
                "'",
            }
            parts += [text[end : tag.start()], " " if quoted else "\n" if tag[1] else "\nanswer: "]
            end = tag.end()
        elif tag[1]:
            parts += [text[end : tag.start()], "\n"]
            end = tag.end()
        elif _denies_score(tag[2], text[tag.end() : text.find("<", tag.end())].strip()):
            parts += [text[end : tag.start()], DENIED]
            end = tag.end()
        elif (
            tag.start() < last_end.get(tag[2], 0) and not text[end : tag.start()].rpartition("\n")[2].strip()
        ):
            parts.append(text[end : tag.start()])
            end, closing = tag.end(), tag[2]
    return "".join([*parts, text[end:]])


class _Field(NamedTuple):
    key: str
    value: str | None


_JSON_START = re.compile(r"^[^\S\n]*(?:json\s*)?([{\[])(?=\s*[{\"'\w])", re.MULTILINE)
_JSON_LEAD = re.compile(rf"\s*[*_]*(?:{'|'.join(WORDS['json_leads'])}) ?:[*_]* *(?={{)")
"""Matches what a reply says before its JSON on the first line."""
_JSON_TOKEN = re.compile(
    r"""(?:\s+|//[^\n]*)*+(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([+-]?[\w.][\w.+/-]*)|([{}\[\]:,])|(.))""",
    re.DOTALL,
)
_JSON_FIELD = re.compile(r"""["']([\w -]{1,40})["']\s*:\s*("(?:[^"\\\n]|\\.)*"|[^\s,}\]]+)""")
_DIGITS = re.compile(r"\d+")
_EMPTY = re.compile(r"null|none|unknown|unclear|undetermined|true|false")
_OWN_SCORE = re.compile(r"(?:final|overall)?[ _-]?(?:score|rating|grade|answer)")
_DEEPEST = 6
_ARGUMENTS = re.compile(r'("(?:arguments|parameters|args|input)"\s*:\s*)"(\{(?:[^"\\]|\\.)*\})"')
"""Matches a tool call's arguments as JSON in a string."""


def _json(text: str, is_name: IsName, is_value: IsValue, is_told: IsValue, is_other: IsName) -> str:
    """Replace a JSON object by lines with its score fields, its bare labels, and, first, what it tells of the scale's ends."""
    lead = _JSON_LEAD.match(text)
    text = text[lead.end() :] if lead else text
    start = _JSON_START.search(text)
    end = text.rfind("}") + 1
    if start is None or end <= start.start(1) or ":" not in text[start.start(1) : end]:
        return text
    if text[: start.start(1)].count('"') % 2:
        return text
    body = text[start.start(1) : end]
    body = _ARGUMENTS.sub(lambda m: m[1] + m[2].replace('\\"', '"'), body) if '"{' in body else body
    told: list[str] = []
    lines: list[str] = []
    empty: list[str] = []
    for key, value in _fields(body, is_name, is_other):
        if is_name(key) and _EMPTY.fullmatch(value or "null") and _OWN_SCORE.fullmatch(key):
            empty.append("answer: null")  # the last: what other fields say is no answer then
        elif is_name(key):
            lines.append(f"answer: {value}")
        elif value is None:
            continue
        elif _denies_score(key, value.strip()) or (
            _ERROR_FIELD.search(key) and value.strip() not in _DENYING["negative"]
        ):
            told.append(DENIED)
        elif is_value(value):
            lines += [f"field: {value}"] * (not value.strip().isdecimal())
        elif is_told(value):
            told.append(f"{BLANK} {_DIGITS.sub(BLANK, value)}")
    return "\n".join([text[: start.start(1)], *told, *lines, *empty[:1], BLANK, text[end:].lstrip("]` \n")])


_DENYING: dict[str, list[str]] = WORDS["denying_fields"]
_ERROR_FIELD, _TRUE_FIELD, _FALSE_FIELD = (
    re.compile(rf"(?<![^\W_])(?:{'|'.join(_DENYING[kind])})(?![^\W_])")
    for kind in ("errors", "if_true", "if_false")
)


def with_denials(text: str, is_name: IsName) -> str:
    """Mark lines that deny the reply's score: ``Valid: false``."""
    return _FIELD_LINE.sub(
        lambda found: DENIED if _denies_score(found[1], found[2]) and not is_name(found[1]) else found[0],
        text,
    )


_FIELD_LINE = re.compile(
    rf"^[ *-]*([^\W\d][\w -]{{1,30}}?)[ *]*:[ *]*({'|'.join(filter(None, _DENYING['negative'] + _DENYING['affirmative']))})[ .*]*$",
    re.MULTILINE,
)
"""Matches a line with a field that is true or false."""


def _denies_score(key: str, value: str) -> bool:
    """Tell whether a field says that the score beside it does not count: ``"valid": false``, ``"retracted": true``."""
    asserts = _FALSE_FIELD.search(key) is not None
    if _TRUE_FIELD.search(key) or (asserts and _NEGATION.search(key)):
        return value in _DENYING["affirmative"]
    return asserts and (value in _DENYING["negative"] or _TRUE_FIELD.fullmatch(value) is not None)


_NEGATION = re.compile(r"(?<![^\W_])(?:no|not|non|nicht|pas|não|не)(?![^\W_])")


def _fields(body: str, is_name: IsName, is_other: IsName) -> Iterable[_Field]:
    """Return the fields of an object and of its nested objects, unless they are somebody else's ("example")."""
    if body.count("{") == 1 and "[" not in body and "\\" not in body:
        try:
            return [_Field(key, _JSON_WORDS.get(value, value)) for key, value in _FLAT_JSON.decode(body)]
        except ValueError:
            pass  # not quite JSON
    return _walked_fields(body, is_name, is_other)


_FLAT_JSON = json.JSONDecoder(
    object_pairs_hook=list, parse_int=str, parse_float=str, parse_constant=str, strict=False
)
_JSON_WORDS = {None: "null", True: "true", False: "false"}


def _walked_fields(body: str, is_name: IsName, is_other: IsName) -> Iterator[_Field]:
    """Yield the fields of what may not quite be JSON.

    A broken string ends the walk: what looks like a score field behind it is yielded as well, so that it can contradict.
    """
    stack: list[tuple[str, str]] = []
    key, last = "", ""
    for token in _JSON_TOKEN.finditer(body):
        string, word, sign, other = token.groups()
        if other or ((string or word) and last not in {"", "{", "[", ":", ","}):
            rest = _JSON_FIELD.finditer(body, token.start())
            yield from (_Field(f[1], f[2].strip("\"'")) for f in rest if is_name(f[1]))
            return
        if sign in {"{", "["}:
            stack.append((sign, key))
            key = ""
            if len(stack) > _DEEPEST:
                return
        elif sign in {"}", "]"}:
            del stack[-1:]
            key = ""
        elif sign == ",":
            key = ""
        elif string or word:
            value = string[1:-1] if string else word
            if stack and stack[-1][0] == "{" and last in {"{", ","}:
                key = value
            elif last == ":" and stack and not any(FOREIGN.match(name) for _, name in stack):
                yield from _nested_field([name for _, name in stack], key, value, is_name, is_other)
        last = sign or ("v" if string or word else last)


def _nested_field(
    outer: list[str], key: str, value: str, is_name: IsName, is_other: IsName
) -> Iterator[_Field]:
    """Yield a field of nested objects, unless it is the score of something else than they are named for."""
    if key != "value" and not is_name(key):
        yield _Field(key, value)
    elif not any(map(is_other, outer)):
        yield _Field(next(filter(is_name, reversed(outer)), key), value)
