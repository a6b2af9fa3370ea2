"""Identifiers that sort by the time at which they were made."""

import secrets
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letters that are taken for digits."""

_TIME_BITS, _RANDOM_BITS, _BITS_PER_CHARACTER = 48, 80, 5


def new_id(prefix: str) -> str:
    """A new identifier: prefix, 48 bits of milliseconds, 80 random bits, as in a ULID."""
    number = time.time_ns() // 1_000_000 << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    length = -(-(_TIME_BITS + _RANDOM_BITS) // _BITS_PER_CHARACTER)
    shifts = range((length - 1) * _BITS_PER_CHARACTER, -1, -_BITS_PER_CHARACTER)
    return f"{prefix}_" + "".join(_ALPHABET[number >> shift & 31] for shift in shifts)
