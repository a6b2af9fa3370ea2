"""Fills the placeholders of an instrument's templates."""

import re
from collections.abc import Mapping
from functools import lru_cache

_PLACEHOLDER = re.compile(r"\{([a-z_ ]+)\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with every placeholder that has a value filled in.

    In one pass, so that braces inside the values, which are untrusted, stay what they are.
    """
    return "".join([text if name is None else values.get(name, text) for text, name in _parts(template)])


@lru_cache(256)
def _parts(template: str) -> tuple[tuple[str, str | None], ...]:
    """A template's pieces in order, each placeholder with its name."""
    pieces = _PLACEHOLDER.split(template)
    return tuple(
        (f"{{{piece}}}", piece) if n % 2 else (piece, None) for n, piece in enumerate(pieces) if piece
    )
