"""Loads the words by which a judge is asked about several sentences at once."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from pydantic import model_validator

from app.domain.judging.grouping import PERSONA_CRITERION, GroupedWords
from app.instruments.forms import CRITERION_PLACEHOLDERS, Form, Id, Text, placeholders, require_placeholders
from app.instruments.loader import Source

_PROMPT = frozenset({"options", "criterion", "sentences", "count"})
_PERSONA = frozenset({"persona", "question"})


class PromptsFile(Form):
    """``prompts.yaml``."""

    prompt: Text
    criteria: dict[Id, Text]

    @model_validator(mode="after")
    def _check(self) -> "PromptsFile":
        require_placeholders(self.prompt, _PROMPT, "prompt")
        if PERSONA_CRITERION not in self.criteria:
            raise ValueError(f"criteria must have {PERSONA_CRITERION}")
        for name, criterion in self.criteria.items():
            allowed = _PERSONA if name == PERSONA_CRITERION else CRITERION_PLACEHOLDERS
            if not placeholders(criterion) <= allowed:
                raise ValueError(f"criteria.{name} may contain only the placeholders {sorted(allowed)}")
        return self


@cache
def load_grouped(version: str | None = None) -> GroupedWords:
    """The words that come with the package, read once per process.

    Raises:
        InstrumentError: If there is no such version or its data are not valid.
    """
    return read_grouped_words(files("app.instruments"), version)


def read_grouped_words(root: Traversable, version: str | None) -> GroupedWords:
    """Reads and checks the words.

    Args:
        root: The directory that holds ``grouped/<version>/``.
        version: Name of one of the directories in ``grouped``; ``None`` for the latest.

    Raises:
        InstrumentError: If there is no such version, or the file is missing or not valid.
    """
    source = Source(root, "grouped", version)
    words = source.read("prompts.yaml", PromptsFile)
    return GroupedWords(source.version, source.content_hash(), words.prompt, words.criteria)
