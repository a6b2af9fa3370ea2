"""By what texts are recognised as those that PersonaGym's authors released."""

import hashlib
import json
from collections.abc import Iterable, Sequence

_CHARACTERS = 8


def hash_of_questions(persona: str, task: str, questions: Sequence[str]) -> str:
    """The hash of a persona's questions of a task."""
    return _hash([persona, task, list(questions)])[:_CHARACTERS]


def hash_of_names(names: Iterable[str]) -> str:
    """The hash of environments, in whatever order."""
    return _hash(sorted(names))


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()
