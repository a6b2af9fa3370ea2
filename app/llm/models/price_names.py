"""Which of a price list's entries are about a model of exactly that name.

The list finds an entry for nearly every name, by how it begins or by what it contains. That is a guess, and money is not kept by
guesses: a variant can cost six times as much.
"""

import re
from collections.abc import Iterator

from genai_prices.types import (
    ClauseAnd,
    ClauseEndsWith,
    ClauseEquals,
    ClauseOr,
    ClauseStartsWith,
    MatchLogic,
    ModelInfo,
)

_SNAPSHOT = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8})$")
_FINE_TUNED = "ft:"
_REST_OF_FINE_TUNED = re.compile(r"[-\d]*(:.*)?")
"""What may follow where the list knows how the name of a fine-tuned model begins: a snapshot, and whose it is."""

_SEARCHING = re.compile(r"(^|[-/:])(search|deep-research|online|sonar)([-:]|$)")
"""In the names of models that search the web, which is charged besides; OpenRouter's variants of others too."""


def is_named(entry: ModelInfo, model: str) -> bool:
    """Whether an entry is about a model of this name, or about one of which the name is a dated snapshot."""
    name = model.lower()
    if _SEARCHING.search(name):
        return False
    if name.startswith(_FINE_TUNED):
        return any(
            name.startswith(begins) and _REST_OF_FINE_TUNED.fullmatch(name, len(begins))
            for begins in _words(entry.match)
            if begins.startswith(_FINE_TUNED)
        )
    known = {entry.id.lower(), *(word.strip("-@/") for word in _words(entry.match))}
    return not known.isdisjoint({name, _SNAPSHOT.sub("", name)})


def _words(logic: MatchLogic) -> Iterator[str]:
    """What an entry's names are, begin with or end with."""
    if isinstance(logic, ClauseOr | ClauseAnd):
        for part in logic.or_ if isinstance(logic, ClauseOr) else logic.and_:
            yield from _words(part)
    elif isinstance(logic, ClauseEquals):
        yield logic.equals.lower()
    elif isinstance(logic, ClauseStartsWith):
        yield logic.starts_with.lower()
    elif isinstance(logic, ClauseEndsWith):
        yield logic.ends_with.lower()
