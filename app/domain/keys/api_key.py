"""API keys: their form, what is kept of them, and what each may do.

A key is ``assay_``, 44 random characters and 6 of a checksum, all of 0–9, A–Z, a–z: ``assay_[0-9A-Za-z]{50}`` finds it in a
repository or a log, and a mistyped one is told from a wrong one without asking anybody. The first 12 random characters
are no secret: they name the key where it is looked up and shown.
"""

import hmac
import re
import zlib
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

MARK = "assay_"
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_CHARACTERS, CHECKSUM_CHARACTERS = 44, 6
POSSIBLE = len(ALPHABET) ** RANDOM_CHARACTERS
"""How many keys there can be: 262 bits' worth, of which 190 are secret."""
PREFIX_CHARACTERS = len(MARK) + 12

_FORM = re.compile(rf"{MARK}[0-9A-Za-z]{{{RANDOM_CHARACTERS + CHECKSUM_CHARACTERS}}}")


class Scope(StrEnum):
    """What a key may do. Each scope includes those before it."""

    READ = "read"
    """See everything of its tenant, and plan jobs."""
    SUBMIT = "submit"
    """Spend money: submit and control jobs; keep and delete what belongs to them."""
    ADMIN = "admin"
    """Manage keys, webhooks and connections."""


_ORDER = list(Scope)


class MalformedKeyError(ValueError):
    """A text is no key; the message says why, without any part of it."""


def compose(number: int) -> str:
    """The key of a random number below :data:`POSSIBLE`."""
    body = MARK + _encoded(number, RANDOM_CHARACTERS)
    return body + _checksum(body)


def prefix_of(key: str) -> str:
    """The part of a key that is no secret.

    Raises:
        MalformedKeyError: If it is no key.
    """
    if _FORM.fullmatch(key) is None:
        raise MalformedKeyError(
            f"an API key is {MARK} followed by {RANDOM_CHARACTERS + CHECKSUM_CHARACTERS} letters and digits"
        )
    if _checksum(key[:-CHECKSUM_CHARACTERS]) != key[-CHECKSUM_CHARACTERS:]:
        raise MalformedKeyError("the key's checksum is wrong: it was mistyped or truncated")
    return key[:PREFIX_CHARACTERS]


def pepper_name(pepper: bytes) -> str:
    """Return a name that tells peppers apart and reveals nothing about them."""
    return hmac.new(pepper, b"persona-assay pepper name", "sha256").hexdigest()[:12]


def digest(pepper: bytes, key: str) -> bytes:
    """What is kept of a key: it can be checked with the pepper, and nothing leads back."""
    return hmac.digest(pepper, b"api key\0" + key.encode(), "sha256")


def is_key_of(key: str, kept: bytes, pepper: bytes) -> bool:
    """Whether a key is the one of which this was kept; takes equally long for every wrong one."""
    return hmac.compare_digest(digest(pepper, key), kept)


def allows(scopes: Collection[Scope], needed: Scope) -> bool:
    """Whether one of these scopes is, or includes, the needed one."""
    return any(_ORDER.index(scope) >= _ORDER.index(needed) for scope in scopes)


def is_over(end: datetime | None, now: datetime) -> bool:
    """Whether something that ends then, or never, has ended."""
    return end is not None and end <= now


def _checksum(body: str) -> str:
    return _encoded(zlib.crc32(body.encode()), CHECKSUM_CHARACTERS)


def _encoded(number: int, characters: int) -> str:
    digits = []
    for _ in range(characters):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
