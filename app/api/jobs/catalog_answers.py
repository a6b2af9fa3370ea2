"""Schemas of answers about what is built in or configured."""

from typing import Literal

from pydantic import Field

from app.domain.contract import Answer


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
    expected_units: float


class TaskList(Answer):
    """All tasks and the dimensions that they measure."""

    data: list[TaskAnswer]
    dimensions: list[DimensionAnswer]
    instrument: dict[str, str]
    versions: dict[str, list[str]] = Field(
        description="What a job's `versions` can name, by kind, oldest first; the last is what it gets otherwise."
    )


class ConnectionAnswer(Answer):
    """A configured connection; its key is never shown."""

    id: str
    kind: str
    simulated: bool
    models: list[str] | None = Field(description="Models that jobs may use; `null` for all.")
    requests_per_minute: float | None
    tokens_per_minute: float | None
    max_in_flight: int | None


class ConnectionList(Answer):
    """All configured connections."""

    data: list[ConnectionAnswer]
