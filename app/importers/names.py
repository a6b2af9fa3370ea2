"""Loads the names that files use for columns and speakers."""

from importlib.resources import files
from typing import Any

import yaml

_NAMES: dict[str, Any] = yaml.safe_load((files(__package__) / "names.yaml").read_text("utf-8"))

COLUMNS: dict[str, list[str]] = _NAMES["columns"]
NOT_USED: dict[str, str] = _NAMES["not_used"]
SPEAKER_COLUMNS: list[str] = _NAMES["speaker_columns"]
MESSAGE_COLUMNS: list[str] = _NAMES["message_columns"]
TEXT_LISTS: list[str] = _NAMES["text_lists"]
CONVERSATIONS: list[str] = _NAMES["conversations"]
SPEAKERS: dict[str, str] = {name: speaker for speaker, names in _NAMES["speakers"].items() for name in names}


def first_of(names: list[str], record: dict[Any, Any]) -> str | None:
    """Find the first of these names that a record has, in any case; return it as the record writes it."""
    own = {key.strip().casefold(): key for key in reversed(list(record)) if isinstance(key, str)}
    return next((own[name] for name in names if name in own), None)
