"""What is answered to a file of another tool: what was found in it, and the bodies that can be sent next."""

import json
from typing import Any, Literal

from pydantic import Field

from app.domain.contract import Answer

MOST_LISTED = 1_000
"""Refused records, personas and scores that are listed; all are counted."""
SAMPLES = 5


class RefusedRecord(Answer):
    """A record that was not taken."""

    place: str = Field(
        description="JSON pointer into the file; `/lines/<n>`, `/rows/<n>`, `/files/<name>` or `/chunks/<n>` where it is not JSON.",
        examples=["/lines/3"],
    )
    reason: str


class ReasonCount(Answer):
    """How many records were refused for a reason."""

    reason: str
    count: int


class FoundName(Answer):
    """A model, persona or task, with its number of texts."""

    name: str
    count: int
    description: str | None = Field(None, description="Of a persona: its description, shortened.")


class FoundScore(Answer):
    """The scores that the tool's own scorer gave."""

    name: str
    count: int
    lowest: float
    highest: float


class SampleRecord(Answer):
    """One of the first records, shortened."""

    place: str
    persona: str | None
    model: str | None
    task: str | None
    prompt: str | None
    text: str | None
    scores: dict[str, float]


class ImportPreview(Answer):
    """What a file has and how it maps."""

    object: Literal["import"] = "import"
    kind: str = Field(description="The file's kind.", examples=["inspect"])
    found: int = Field(description="Texts, personas or questions found, and records that have none.")
    mapped: int = Field(description="How many of them the bodies below have.")
    refused: int = Field(description="How many were refused: `found` − `mapped`.")
    reasons: list[ReasonCount] = Field(description="Why, most frequent first; all refused ones are counted.")
    refused_records: list[RefusedRecord] = Field(description="The first 1,000 refused ones.")
    mapping: dict[str, str] = Field(
        description="What of the file becomes what.", examples=[{"persona": "system messages"}]
    )
    models: list[FoundName]
    personas: list[FoundName] = Field(description="The first 1,000.")
    persona_count: int
    tasks: list[FoundName]
    prompts: int = Field(description="Number of different prompts.")
    scores: list[FoundScore]
    samples: list[SampleRecord] = Field(description="The first five records.")
    notes: list[str] = Field(description="What is not taken as it is, and what still has to be chosen.")
    job: dict[str, Any] | None = Field(
        description="A body for `POST /v1/jobs`, if there are texts; add judges. Of an upload, its `responses` name that."
    )
    persona_set: dict[str, Any] | None = Field(
        description="A body for `POST /v1/persona-sets`, if there are personas without texts."
    )
    question_set: dict[str, Any] | None = Field(
        description="A body for `POST /v1/question-sets`, if there are questions without answers."
    )

    def encoded(self) -> bytes:
        """Encode as JSON, with a question mark for each lone surrogate of the file."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False).encode(errors="replace")


class ImportReading(Answer):
    """An upload that is being read; the same request answers what it has, once that is done."""

    object: Literal["import_reading"] = "import_reading"
    upload: str = Field(examples=["upl_01kxyz0abcdefghjkmnpqrstvw"])
