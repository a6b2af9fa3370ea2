"""Hashes of JSON values, whatever the order of their fields."""

import hashlib
import json

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def hash_of(value: object) -> str:
    """Return the hash of a value's JSON. It is encoded part by part, so that other threads run in between."""
    found = hashlib.sha256()
    for part in _ENCODER.iterencode(value):
        found.update(part.encode())
    return found.hexdigest()
