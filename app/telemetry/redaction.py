"""Redacts secrets from logs, as a last line of defence."""

import base64
import logging
import re
import traceback
from collections import OrderedDict
from collections.abc import Iterator
from urllib.parse import quote

REMOVED = "[key]"
PIECE = 12
"""Characters of a secret in a row that are never left anywhere."""
SHORTEST = 16
"""Fewest random characters of a key that is looked for in pieces: any word may be a shorter one."""

_PROBE = PIECE // 2
"""Every piece has one of a secret's blocks of this length as a whole."""
_VENDORS_PREFIX = re.compile(r"(?:[a-z]{1,6}[0-9]{0,2}[-_]){1,3}")
"""As in ``sk-ant-api03-``, which is no secret, and may be what a text is about."""
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {REMOVED}"),
    (re.compile(r"\bsk-[\w-]{12,}"), REMOVED),
    (re.compile(r"\bassay_[0-9A-Za-z]{20,}"), REMOVED),
    (re.compile(r"\bwhsec_[\w+/=-]{8,}"), REMOVED),
    # Up to the last @ of the word: a password that should have been encoded may hold any character.
    (re.compile(r"(?<=://)([^\s:/@\"'<>]*):[^\s\"'<>]+@"), rf"\1:{REMOVED}@"),
)
"""What looks like a secret, whosever it is."""


class Traces:
    """Finds a secret, or a piece of it, as it is, in base64 and in a URL."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._random = _VENDORS_PREFIX.sub("", secret, count=1) if _VENDORS_PREFIX.match(secret) else secret
        forms = set(_forms(self._random)) if self.in_pieces else set()
        self._probes = frozenset(
            form[n : n + _PROBE] for form in forms for n in range(0, len(form) - _PROBE + 1, _PROBE)
        )
        self._pieces = frozenset(form[n : n + PIECE] for form in forms for n in range(len(form) - PIECE + 1))

    @property
    def in_pieces(self) -> bool:
        """Whether the secret is long enough to be looked for in pieces."""
        return len(self._random) >= SHORTEST

    def removed(self, text: str) -> str:
        """A text without the secret, and without any piece of a long one."""
        shown = text.replace(self._secret, REMOVED)
        return self.pieces_removed(shown)

    def pieces_removed(self, text: str) -> str:
        """A text without any piece of a long secret; a short one, which may be a word of it, stays."""
        if len(text) < PIECE or not self._may_have_pieces(text):
            return text
        starts = [n for n in range(len(text) - PIECE + 1) if text[n : n + PIECE] in self._pieces]
        return "".join(_without(text, starts))

    def _may_have_pieces(self, text: str) -> bool:
        """Whether any block of the secret is in a text, by the shorter way: most replies are shorter than the blocks are many."""
        if len(text) > len(self._probes):
            return any(probe in text for probe in self._probes)
        blocks = {text[n : n + _PROBE] for n in range(len(text) - _PROBE + 1)}
        return not blocks.isdisjoint(self._probes)


def _forms(secret: str) -> Iterator[str]:
    """What a secret looks like, and the part of its base64 that depends on nothing before or after it."""
    yield secret
    yield quote(secret, safe="")
    for before in range(3):
        padded = base64.b64encode(b"\0" * before + secret.encode()).decode().rstrip("=")
        first, open_end = -(-before * 8 // 6), (before + len(secret.encode())) % 3 != 0
        encoded = padded[first : -1 if open_end else None]
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


def _without(text: str, starts: list[int]) -> Iterator[str]:
    kept = 0
    for start in starts:
        if start > kept or (start == 0 and kept == 0):
            yield text[kept:start]
            yield REMOVED
        kept = max(kept, start + PIECE)
    yield text[kept:]


_QUOTING = frozenset({"psycopg", "sqlalchemy"})
"""Packages whose exceptions quote what they were given."""


def shown_error(error: BaseException) -> str:
    """An exception and what led to it, as a traceback, without the words of a database's error: those quote rows, and rows are texts."""
    return "\n".join(reversed(list(_shown(error))))


def _shown(error: BaseException | None) -> Iterator[str]:
    """An exception and what led to it, the last first."""
    while error is not None:
        kind = type(error)
        words = "" if _is_quoting(error) else f": {error}"
        yield f"{''.join(traceback.format_tb(error.__traceback__))}{kind.__module__}.{kind.__qualname__}{words}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _without_words(message: str, error: BaseException | None) -> str:
    """A message without the words of a database's error that it tells of, as asyncio's and Celery's messages do."""
    while error is not None:
        if _is_quoting(error):
            for words in filter(None, (repr(error), str(error))):
                message = message.replace(words, type(error).__name__)
        error = error.__cause__ or error.__context__
    return message


def _is_quoting(error: BaseException) -> bool:
    """Whether the words of an exception may quote texts."""
    return type(error).__module__.partition(".")[0] in _QUOTING


_make_record = logging.getLogRecordFactory()

MOST_CHARACTERS = 16 * 1024
"""Of all known secrets together, each of which takes some 600 bytes of memory: whoever may send keys can send any number."""

_known: OrderedDict[str, Traces] = OrderedDict()
"""The secrets that this process has had in its hands last; one that was replaced is still secret."""


def traces_of(secret: str) -> Traces:
    """What finds a secret; from now on it is taken out of every line of this process's log as well."""
    found = _known.get(secret)
    if found is None:
        _known[secret] = found = Traces(secret)
        while len(_known) > 1 and sum(map(len, tuple(_known))) > MOST_CHARACTERS:
            _known.popitem(last=False)
    else:
        _known.move_to_end(secret)
    return found


def redacted(text: str) -> str:
    """A text without what looks like a secret, and without any piece of a known long one."""
    for pattern, shown in _PATTERNS:
        text = pattern.sub(shown, text)
    for traces in tuple(_known.values()):
        text = traces.pieces_removed(text)
    return text


def redact_logging() -> None:
    """Keeps secrets out of what libraries log."""
    if logging.getLogRecordFactory() is not _redacted_record:
        logging.setLogRecordFactory(_redacted_record)


def _redacted_record(*given: object, **named: object) -> logging.LogRecord:
    record = _make_record(*given, **named)
    try:
        message = record.getMessage()
    except Exception:  # noqa: BLE001 - a message that does not fit its arguments is told of where it is written
        return record
    error = record.exc_info[1] if record.exc_info else None
    shown = redacted(_without_words(message, error))
    if shown != message:
        record.msg, record.args = shown, ()
    if error is not None:
        record.exc_text = redacted(shown_error(error))
    return record
