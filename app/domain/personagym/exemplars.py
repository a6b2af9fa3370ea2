"""By what exemplars are found again: those of a question set serve all jobs that would ask for the same."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from app.domain.personagym.prompts import score_examples_prompt
from app.domain.personagym.task import GymPrompts, GymTask
from app.domain.providers.model import Model

_CHARACTERS = 32


def exemplar_key(prompts: GymPrompts, task: GymTask, persona: str, question: str, reasoner: Model) -> str:
    """The key of a question's exemplars: a hash of what the reasoner is asked, rubric included, and how it is sampled."""
    asked = score_examples_prompt(prompts, task, persona, question)
    return _hash([asked, reasoner.connection, reasoner.name, asdict(reasoner.parameters)])


def given_key(persona: str, task: str, question: str) -> str:
    """The key of exemplars that somebody brought with a question: they serve whatever the rubric and the reasoner are."""
    return _hash([persona, task, question])


def place_of(persona: int, task: str, item: int) -> str:
    """Where exemplars stand in their question set, by which they are ordered."""
    return f"{persona:06}/{task}/{item:06}"


def read_place(place: str) -> tuple[int, str, int]:
    """Persona, task and item of a place."""
    persona, task, item = place.split("/")
    return int(persona), task, int(item)


def persona_order(content: Iterable[str]) -> Sequence[str]:
    """A question set's personas in the order by which places number them."""
    return sorted(content)


def _hash(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_CHARACTERS]
