"""Built-in personas, tasks and dimensions as clients are shown them."""

from typing import Literal

from pydantic import Field

from app.domain.contract import Answer, Number


class Trait(Answer):
    """A persona's stand on one dimension."""

    dimension: str
    level: str


class PersonaAnswer(Answer):
    """A built-in persona."""

    id: str
    description: str
    traits: list[Trait]
    sets: list[str]


class PersonaList(Answer):
    """All built-in personas and sets."""

    data: list[PersonaAnswer]
    sets: dict[str, list[str]]
    instructions: list[str]


class DimensionAnswer(Answer):
    """A built-in dimension."""

    id: str
    name: str
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
    prompt: str | None = Field(description="`null` where each persona is asked questions of its own.")
    scoring_prompt: str
    expected_units: Number


class TaskList(Answer):
    """All tasks and the dimensions that they measure."""

    data: list[TaskAnswer]
    dimensions: list[DimensionAnswer]
    instrument: dict[str, str]
    versions: dict[str, list[str]] = Field(
        description="What a job's `versions` can name, by kind, oldest first; the last is what it gets otherwise."
    )
