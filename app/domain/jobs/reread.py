"""What reading a job's stored replies again would change, as clients see it."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from app.domain.contract import Answer, Body
from app.domain.judging.verdict import VerdictStatus

MOST_EXAMPLES = 50

Kind = Literal["sentences", "checks", "grades"]


class RereadIn(Body):
    """Request to read a job's stored replies again."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"apply": False, "examples": 3}]}
    )

    apply: bool = Field(False, description="Store the new verdicts and compute the results again.")
    examples: Annotated[int, Field(ge=0, le=MOST_EXAMPLES)] = Field(
        3, description="Examples shown of each kind of change."
    )


class RereadExample(Answer):
    """One verdict that changes."""

    response: str
    unit: int | None = Field(description="Index of the sentence; `null` for a grade.")
    judge: str
    dimension: str | None
    text: str = Field(description="The judged sentence or response.")
    reply: str
    repair_reply: str | None = Field(description="The reply to the follow-up request, if there was one.")
    score_before: int | None
    score_after: int | None


class RereadChange(Answer):
    """Verdicts that change in the same way."""

    of: Kind = Field(description="`checks` are second verdicts of grouping and order checks.")
    before: VerdictStatus
    after: VerdictStatus
    count: int
    examples: list[RereadExample]


class Reread(Answer):
    """The verdicts that change when a job's stored replies are read with the current rules."""

    object: Literal["reread"] = "reread"
    job: str
    reader_before: str = Field(description="Version of the rules that read the stored verdicts.")
    reader: str = Field(description="Version of the current rules.")
    replies: int = Field(description="Verdicts and grades whose replies are stored.")
    changed: int
    changes: list[RereadChange] = Field(description="By kind, the most frequent first.")
    applied: bool = Field(
        description="Whether the new verdicts are stored. The job is then `finalizing` until its results are computed."
    )
