"""Loads the names that files use for columns and speakers."""

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

_NAMES: dict[str, Any] = yaml.safe_load((files(__package__) / "names.yaml").read_text("utf-8"))

_NOT_LETTERS = re.compile(r"[\W_]+")
COLUMNS: dict[str, list[str]] = _NAMES["columns"]
NOT_USED: dict[str, str] = _NAMES["not_used"]
SPEAKER_COLUMNS: list[str] = _NAMES["speaker_columns"]
MESSAGE_COLUMNS: list[str] = _NAMES["message_columns"]
TEXT_LISTS: list[str] = _NAMES["text_lists"]
CONVERSATIONS: list[str] = _NAMES["conversations"]
SPEAKERS: dict[str, str] = {name: speaker for speaker, names in _NAMES["speakers"].items() for name in names}


def first_of(names: list[str], record: dict[Any, Any]) -> str | None:
    """Find the first of these names that a record has, in any case and spelling; return it as the record writes it."""
    return _first_of(tuple(names), tuple(record))


@lru_cache(256)
def _first_of(names: tuple[str, ...], keys: tuple[Any, ...]) -> str | None:
    """Compare without case, spaces and punctuation: `modelResponse`, `Model Response` and `model_response` are one name."""
    own = {_NOT_LETTERS.sub("", key.casefold()): key for key in reversed(keys) if isinstance(key, str)}
    return next((own[plain] for name in names if (plain := _NOT_LETTERS.sub("", name)) in own), None)
