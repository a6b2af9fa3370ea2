"""Who a job's personas are and what its dimensions are called, as people read it."""

from collections.abc import Iterable
from typing import Self

from app.domain.instruments.contract import DimensionInWords, PersonaInWords
from app.domain.results.contract import Results


class InWords:
    """Looks up words by the ids that results have.

    Args:
        personas: The job's.
        dimensions: Those of its cells.
    """

    def __init__(self, personas: Iterable[PersonaInWords], dimensions: Iterable[DimensionInWords]) -> None:
        self._personas = {persona.id: persona for persona in personas}
        self._dimensions = {dimension.id: dimension for dimension in dimensions}

    @classmethod
    def of(cls, results: Results) -> Self:
        """Those of a job's results."""
        return cls(results.personas, results.dimensions)

    def description(self, persona: str) -> str:
        """A persona's description, untrusted text; empty where it is not known."""
        known = self._personas.get(persona)
        return "" if known is None else known.description

    def traits(self, persona: str) -> str:
        """All of a persona's traits; empty where there are none, or none is known."""
        known = self._personas.get(persona)
        return "" if known is None else ", ".join(trait.words for trait in known.traits)

    def dimension(self, id_: str) -> str:
        """A dimension's display name."""
        known = self._dimensions.get(id_)
        return id_ if known is None else known.label

    def trait(self, dimension: str, level: str) -> str:
        """A trait, for example ``"low in emotional stability (neurotic)"``."""
        known = self._dimensions.get(dimension)
        return f"{dimension}: {level}" if known is None else known.in_words.get(level, level)

    def row(self, persona: str, dimension: str, level: str) -> str:
        """What stands before a row of a figure: the persona's id, and its dimension and level where the id has no level."""
        told = "" if persona == f"{dimension}-{level}" else f" {level}"
        return f"{persona} · {self.dimension(dimension)}{told}"
