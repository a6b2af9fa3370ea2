"""Flags: what somebody says of a sentence that they came across, for example that the judge is wrong.

A flag is no label of a labelling round: whoever flags has seen the judges' scores and has chosen the sentence by them, so flags enter
no agreement and no calibration.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from app.domain.contract import Answer, Body, Identifier, Page, Text
from app.domain.labels.annotation_file import AnnotationDraft
from app.domain.labels.contract import RESPONSE, Unit

MOST_FLAGS = 10_000
"""Of one job."""

FLAG_EXAMPLE: JsonDict = {
    "annotator": "anna",
    "response": RESPONSE,
    "unit": 2,
    "score": 4,
    "note": "ironic: in character",
}


class FlagIn(Body):
    """A flag on a sentence or a whole response."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [FLAG_EXAMPLE]})

    annotator: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        description="Who flags it; the same name is the same person."
    )
    response: Annotated[str, Field(max_length=100)] = Field(description="A response's id.")
    unit: Unit | None = Field(None, description="A sentence's `index`; omitted for the whole response.")
    dimension: Identifier | None = Field(
        None, description="Dimension of `score`; may be omitted if there is only one."
    )
    score: int | Literal["not_applicable"] | None = Field(
        None, description="The score that the judges should have given."
    )
    note: Annotated[Text, Field(max_length=2000)] | None = None

    def to_draft(self) -> AnnotationDraft:
        """What it says as an annotation would."""
        given = self.model_dump(exclude={"note"})
        return AnnotationDraft(pointer="", **given)


class Flag(Answer):
    """A flag on a sentence or a whole response. Flags count in no metric, agreement or calibration."""

    id: str = Field(examples=["flag_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["flag"] = "flag"
    job: str
    annotator: str
    response: str
    unit: int | None = Field(description="`null`: the whole response.")
    dimension: str | None
    score: int | Literal["not_applicable"] | None = Field(
        description="The score that the judges should have given."
    )
    note: str | None
    created_at: datetime
    updated_at: datetime


class FlagList(Page[Flag]):
    """A page of flags, newest first."""
