"""Encrypts secrets for the database. What is stored can only be read with a key that lies elsewhere."""

import base64
import binascii
import hashlib
import os
from collections.abc import Collection, Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import SecretStr

KEY_BYTES = 32
"""AES-256."""

_NONCE_BYTES = 12
"""Random, as NIST SP 800-38D has it for far fewer than 2³² messages under a key."""
_FORM = "1"
_PARTS = 3
_NAME_CHARACTERS = 12


class SealError(Exception):
    """A secret can't be read: its key is not there, or it is not what was stored, or not for this."""


class SecretCipher:
    """The installation's keys: the first encrypts, all can read.

    Args:
        keys: Each of :data:`KEY_BYTES`.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = {_name(key): AESGCM(key) for key in keys}
        self._first = next(iter(self._keys), None)

    def __bool__(self) -> bool:
        return self._first is not None

    def seal(self, secret: SecretStr, bound_to: str) -> str:
        """A secret as it may be stored.

        Args:
            secret: The secret.
            bound_to: What it is for; nobody can read it as something for anything else.

        Raises:
            SealError: If there is no key.
        """
        if self._first is None:
            raise SealError("there is no key to encrypt with")
        nonce = os.urandom(_NONCE_BYTES)
        sealed = self._keys[self._first].encrypt(nonce, secret.get_secret_value().encode(), bound_to.encode())
        return f"{_FORM}.{self._first}.{base64.urlsafe_b64encode(nonce + sealed).decode()}"

    def open(self, sealed: str, bound_to: str) -> SecretStr:
        """The secret that :meth:`seal` was given.

        Raises:
            SealError: If it can't be read.
        """
        form, name, content = (*sealed.split("."), "", "", "")[:_PARTS]
        key = self._keys.get(name)
        if form != _FORM or key is None:
            raise SealError("it was encrypted with a key that is not among ASSAY_ENCRYPTION_KEYS")
        try:
            raw = base64.urlsafe_b64decode(content)
            return SecretStr(key.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], bound_to.encode()).decode())
        except (InvalidTag, binascii.Error, ValueError):
            problem = "it was changed, or stored for something else"
        raise SealError(problem)

    def has_any(self, names: Collection[str]) -> bool:
        """Return whether it has a key of one of the names that sealed secrets carry."""
        return not self._keys.keys().isdisjoint(names)

    def is_current(self, sealed: str) -> bool:
        """Whether a secret was encrypted with the first key, so that the others are not needed for it."""
        return self._first is not None and sealed.startswith(f"{_FORM}.{self._first}.")


def parse_keys(text: str) -> tuple[bytes, ...]:
    """Keys in hexadecimal, with commas or white space between; the current one first.

    Raises:
        ValueError: If one is none; the message does not repeat it.
    """
    keys: list[bytes] = []
    for number, part in enumerate(text.replace(",", " ").split(), 1):
        try:
            key = bytes.fromhex(part)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            problem = f"key {number} is not {KEY_BYTES} bytes in hexadecimal, such as `openssl rand -hex {KEY_BYTES}` makes"
            raise ValueError(problem)
        keys.append(key)
    return tuple(keys)


def _name(key: bytes) -> str:
    """Tells keys apart without saying anything of them."""
    return hashlib.sha256(b"persona-assay key name" + key).hexdigest()[:_NAME_CHARACTERS]
