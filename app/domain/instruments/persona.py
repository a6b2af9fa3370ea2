"""Personas: whom a model is told to be, and at which level of which dimensions that person stands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.domain.instruments.dimension import Dimension

MAX_PERSONAS = 10_000
"""A job's, those of its sets included, and a set's; they are numbered by two-byte integers."""


@dataclass(frozen=True, slots=True, order=True)
class Trait:
    """A persona's stand on one dimension, such as extraversion: low.

    Attributes:
        dimension: A dimension's id.
        level: One of the level names of that dimension's scale.
    """

    dimension: str
    level: str


def traits_of(levels: Mapping[str, str]) -> tuple[Trait, ...]:
    """Traits from level by dimension."""
    return tuple(Trait(dimension, level) for dimension, level in levels.items())


@dataclass(frozen=True, slots=True)
class Persona:
    """Whom the model plays.

    Attributes:
        id: Unique within a job, for example ``"E-low"``.
        description: The words put in place of ``{persona}`` in an instruction, for example ``"introverted person"``
            or ``"a 71-year-old retired nurse from Italy"``. Untrusted text.
        traits: What the atomic tasks measure; each dimension at most once. Empty for personas that only
            PersonaGym's tasks can measure.
    """

    id: str
    description: str
    traits: tuple[Trait, ...] = ()


def traits_in_words(persona: Persona, dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Each of a persona's traits as people read it, for example ``"low in emotional stability (neurotic)"``.

    Args:
        persona: The persona.
        dimensions: Those of its traits, among others.
    """
    known = {dimension.id: dimension for dimension in dimensions}
    return tuple(known[trait.dimension].trait_in_words(trait.level) for trait in persona.traits)
