"""Imports what child processes read files with, before they are copied."""

import pyarrow.parquet  # noqa: F401

from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from app.instruments.rules import RULES
from app.services.jobs.import_reader import known_items
from app.services.results import bundle_reader  # noqa: F401
from app.services.uploads.upload_reader import load_rules


def prepare() -> None:
    """Load what every file needs."""
    load_atomic()
    load_personagym()
    known_items()
    load_rules(RULES.current)
