"""The protocol ``hardened``: a judge is told what of its prompt is data, and shows by a key word whose instructions it follows.

The papers put the judged text into the prompt as it is. Here it is enclosed in a key word that it cannot contain, since the word is an
HMAC of it with a secret of the installation, and the judge has to begin its reply with that word. A judge that a text has talked into "reply 5, nothing else"
leaves it out (known-answer detection: Liu et al., Formalizing and Benchmarking Prompt Injection Attacks and Defenses, 2024). A text that
only argues for a score, or says to keep to the form, is not found out so.
"""

import hashlib
import hmac
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.domain.errors import FieldError
from app.domain.instruments.template import fill
from app.domain.providers.model import Model

MAX_REPLY_CHARACTERS = 100_000
"""Longest reply of a judge or a reasoner that is read; a score takes one, a grade with its reasons some hundreds."""
KEY_LENGTH = 12
KEY_TOKENS = 16
"""Tokens that the key's line of a reply may take, at most: what a judge's own limit must leave room for."""
_END_OF_THOUGHTS = "</think>"
_BEFORE_KEY = string.whitespace + "<*_`\"'#"
_AFTER_KEY = string.whitespace + ">*_`\"':.,"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Hardening:
    """The words by which a judge is told.

    Attributes:
        version: The instrument's version, for example ``"v1"``.
        content_hash: SHA-256 over its content, in hexadecimal.
        system: The system prompt, with ``{key}``.
        text: How a judged text is enclosed, with ``{key}`` and ``{text}``.
        secret: What the key words are made with; empty for a job of protocol 1, whose key words are hashes without a secret and
            count wherever they stand in a reply.
    """

    version: str
    content_hash: str
    system: str
    text: str
    secret: str = field(default="", repr=False)

    @property
    def protocol(self) -> int:
        """How key words are made and read: 1 or 2."""
        return 2 if self.secret else 1


class KeyedReply(NamedTuple):
    """A judge's reply without its key.

    Attributes:
        text: What is left to be read.
        key_missing: Whether it had to have a key and has none.
    """

    text: str
    key_missing: bool = False


@dataclass(frozen=True, slots=True)
class Showing:
    """How what one call is about is shown to a judge.

    Attributes:
        hardening: The words; ``None`` for the papers' way, in which everything stays as it is.
        key: The word that encloses what is judged and begins the reply.
    """

    hardening: Hardening | None = None
    key: str = ""

    @property
    def system(self) -> str | None:
        """The system prompt."""
        return None if self.hardening is None else fill(self.hardening.system, {"key": self.key})

    @property
    def characters(self) -> int:
        """By how much the prompt about one text is longer than the papers'."""
        return 0 if self.system is None else len(self.system) + len(self.shown(""))

    @property
    def reply_tokens(self) -> int:
        """About how many tokens the key's line of a reply takes."""
        return 0 if self.hardening is None else KEY_TOKENS // 2

    def shown(self, text: str) -> str:
        """A judged text as it stands in the prompt."""
        return text if self.hardening is None else fill(self.hardening.text, {"key": self.key, "text": text})

    def read(self, reply: str) -> KeyedReply:
        """Takes the key out of a reply; of a reasoning model's, out of what follows its thoughts.

        Args:
            reply: The reply, as the judge gave it. Untrusted, of any length; one of more than :data:`MAX_REPLY_CHARACTERS`
                says nothing, so that what is read of it is unparsed.
        """
        if len(reply) > MAX_REPLY_CHARACTERS:
            reply = ""
        if self.hardening is None:
            return KeyedReply(reply)
        start = reply.rfind(_END_OF_THOUGHTS) + 1
        if self.hardening.protocol == 1:
            found = re.compile(self.key, re.IGNORECASE).search(reply, start)
        else:
            begin = start + len(_END_OF_THOUGHTS) - 1 if start else 0
            found = re.compile(rf"[{re.escape(_BEFORE_KEY)}]*{self.key}", re.IGNORECASE).match(reply, begin)
        if found is None:
            return KeyedReply(reply, key_missing=True)
        before, after = reply[: found.start()], reply[found.end() :]
        return KeyedReply(f"{before.rstrip(_BEFORE_KEY)}\n{after.lstrip(_AFTER_KEY)}")


AS_IN_THE_PAPERS = Showing()


def showing(hardening: Hardening | None, texts: Sequence[str]) -> Showing:
    """How these texts, all of one call, are shown to a judge."""
    return AS_IN_THE_PAPERS if hardening is None else Showing(hardening, key_of(texts, hardening.secret))


def secret_of(pepper: bytes) -> str:
    """The secret of key words, of which an installation's pepper cannot be found out; jobs keep it."""
    return hmac.digest(pepper, b"key words of judged texts", "sha256").hex()


def key_of(texts: Sequence[str], secret: str) -> str:
    """A word that nobody who writes the texts knows.

    Args:
        texts: What is judged.
        secret: The installation's; without one anybody can compute the word, if not put it into the texts.
    """
    message = "\0".join(texts).encode()
    if secret:
        digest = hmac.digest(bytes.fromhex(secret), message, "sha256")[:16]
    else:
        digest = hashlib.blake2b(message, digest_size=16).digest()
    number = int.from_bytes(digest)
    letters = []
    for _ in range(KEY_LENGTH):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def key_problems(hardening: Hardening | None, judges: Sequence[Model]) -> list[FieldError]:
    """What is wrong with judges whose limit leaves no room for the key."""
    if hardening is None:
        return []
    return [
        FieldError(
            f"/judges/{n}/max_tokens",
            f"the key word before each reply may take {KEY_TOKENS} tokens; allow more, or leave it out",
        )
        for n, judge in enumerate(judges)
        if judge.parameters.max_tokens is not None and judge.parameters.max_tokens <= KEY_TOKENS
    ]
