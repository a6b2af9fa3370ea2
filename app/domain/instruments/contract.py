"""Built-in personas, tasks and dimensions as clients are shown them."""

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field

from app.domain.contract import Answer, Number
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.persona import Persona, traits_in_words


class Trait(Answer):
    """A persona's level on one dimension."""

    dimension: str
    level: str
    words: str = Field(description="The level in words.", examples=["low in emotional stability (neurotic)"])


class PersonaInWords(Answer):
    """Who a persona is."""

    id: str
    description: str = Field(description="Untrusted text.")
    traits: list[Trait]

    @classmethod
    def of(cls, persona: Persona, dimensions: Iterable[Dimension], **others: Any) -> Self:
        """A persona's.

        Args:
            persona: The persona.
            dimensions: Those of its traits, among others.
            others: What else there is to tell of it.
        """
        words = traits_in_words(persona, dimensions)
        traits = [
            Trait(dimension=trait.dimension, level=trait.level, words=said)
            for trait, said in zip(persona.traits, words, strict=True)
        ]
        return cls(id=persona.id, description=persona.description, traits=traits, **others)


class PersonaAnswer(PersonaInWords):
    """A built-in persona."""

    sets: list[str]


class PersonaList(Answer):
    """All built-in personas and sets."""

    data: list[PersonaAnswer]
    sets: dict[str, list[str]]
    instructions: list[str]


class DimensionInWords(Answer):
    """A dimension's display names."""

    id: str
    label: str = Field(description="Display name.", examples=["emotional stability"])
    in_words: dict[str, str] = Field(
        description="Each level in words, the lowest first.",
        examples=[{"low": "low in emotional stability (neurotic)", "high": "high in emotional stability"}],
    )

    @classmethod
    def of(cls, dimension: Dimension, **others: Any) -> Self:
        """A dimension's.

        Args:
            dimension: The dimension.
            others: What else there is to tell of it.
        """
        in_words = {level: dimension.trait_in_words(level) for level in dimension.scale.levels}
        return cls(id=dimension.id, label=dimension.display_name, in_words=in_words, **others)


class DimensionAnswer(DimensionInWords):
    """A built-in dimension."""

    name: str = Field(description="Its word in the scoring prompt, which need not name the high end.")
    minimum: int
    maximum: int
    levels: list[str]
    options: str
    questions: list[str]
    essay_context: str | None


class TaskAnswer(Answer):
    """A task."""

    id: str
    title: str
    framework: Literal["atomic", "personagym"]
    prompt: str | None = Field(description="`null` if each persona gets its own questions.")
    scoring_prompt: str
    expected_units: Number


class TaskList(Answer):
    """All tasks and the dimensions that they measure."""

    data: list[TaskAnswer]
    dimensions: list[DimensionAnswer]
    instrument: dict[str, str]
    versions: dict[str, list[str]] = Field(
        description="Versions that a job's `versions` can name, by kind, oldest first; the last is the "
        "default."
    )
