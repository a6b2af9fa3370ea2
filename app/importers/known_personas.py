"""Recognises personas of a persona set by the words that describe or instruct them."""

from collections.abc import Iterable, Sequence

from app.domain.instruments.persona import Persona
from app.domain.instruments.prompts import system_prompt
from app.importers.papers_questions import squeezed


def persona_words(personas: Iterable[Persona], instructions: Sequence[str]) -> dict[str, Persona]:
    """Personas by id, by description, and by each instruction that assigns them; white space does not count."""
    found: dict[str, Persona] = {}
    for persona in personas:
        found |= {squeezed(system_prompt(words, persona)): persona for words in instructions}
        found |= {squeezed(persona.description): persona, persona.id: persona}
    return found
