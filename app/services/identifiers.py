"""Identifiers that sort by creation time."""

import re
import secrets
from random import getrandbits
from uuid import UUID

from app import clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letters that are taken for digits."""

_TIME_BITS, _RANDOM_BITS, _BITS_PER_CHARACTER = 48, 80, 5
_CHARACTERS = -(-(_TIME_BITS + _RANDOM_BITS) // _BITS_PER_CHARACTER)


def new_id(prefix: str) -> str:
    """A new identifier: prefix, 48 bits of milliseconds, 80 random bits, as in a ULID."""
    number = clock.time_ns() // 1_000_000 << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    shifts = range((_CHARACTERS - 1) * _BITS_PER_CHARACTER, -1, -_BITS_PER_CHARACTER)
    return f"{prefix}_" + "".join(_ALPHABET[number >> shift & 31] for shift in shifts)


def id_form(prefix: str) -> str:
    """The form of what :func:`new_id` makes, as a regular expression."""
    return f"{prefix}_[{_ALPHABET}]{{{_CHARACTERS}}}"


def response_id(job_id: str, cell: int, run: int, item: int) -> str:
    """What the HTTP contract calls the response at a place of a job."""
    return f"resp_{job_id.removeprefix('job_')}-{cell}-{run}-{item}"


def response_place(job_id: str, response: str) -> tuple[int, int, int] | None:
    """The place of a job's response (cell, run, item) by its id; ``None`` if no response of the job has such an id."""
    found = re.fullmatch(
        rf"resp_{re.escape(job_id.removeprefix('job_'))}" + 3 * r"-(0|[1-9]\d{0,8})",
        response,
        re.ASCII,
    )
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))


def new_uuid() -> UUID:
    """A new UUIDv7 (RFC 9562, section 5.7, with method 3): rows inserted together lie together in their index.

    Milliseconds, 12 bits of the fraction of one, 62 random bits. They are no secret: Python's quick generator, which
    seeds itself anew in a forked process, is enough.
    """
    milliseconds, nanoseconds = divmod(clock.time_ns(), 1_000_000)
    fraction = (nanoseconds << 12) // 1_000_000
    return UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | getrandbits(62))
