"""Schemas of answers about responses, their sentences and verdicts; see :mod:`app.api.answer`."""

from typing import Literal

from pydantic import Field

from app.api.answer import Answer, Page
from app.api.reuse_answers import Origin
from app.api.suspicion_answers import SuspicionAnswer


class VerdictAnswer(Answer):
    """One judge's verdict on one sentence."""

    judge: str
    dimension: str
    status: Literal["scored", "not_applicable", "refused", "unparsed", "failed"]
    score: int | None
    raw: str | None
    in_character: bool | None
    group_size: int = Field(
        description="Sentences that the judge was asked about in the same call; 1 where alone."
    )
    reused: Origin | None = Field(description="Which job's reply it is, if no call was made for it.")
    suspicion: SuspicionAnswer


class UnitAnswer(Answer):
    """One sentence."""

    index: int
    span: tuple[int, int] = Field(description="Offsets in the response's text, in Unicode code points.")
    text: str = Field(description="The sentence as the judge read it.")
    verdicts: list[VerdictAnswer]


class GradeAnswer(Answer):
    """One judge's grade of a whole response, by its question's rubric."""

    judge: str
    status: Literal["scored", "refused", "unparsed", "failed"]
    score: int | None
    justification: str | None
    raw: str | None
    error: str | None = Field(description="Why there is no reply.")
    reused: Origin | None = Field(description="Which job's reply it is, if no call was made for it.")
    suspicion: SuspicionAnswer


class ItemAnswer(Answer):
    """What was asked."""

    id: str
    text: str


class ResponseUsage(Answer):
    """Tokens of one response."""

    input_tokens: int
    output_tokens: int


class ResponseAnswer(Answer):
    """A response with its sentences and their verdicts."""

    id: str
    model: str
    persona: str
    levels: dict[str, str]
    task: str
    item: ItemAnswer
    run: int
    instruction: int | None
    iteration: int | None
    status: Literal["answered", "refused", "failed"]
    text: str | None
    refusal: bool
    error: str | None
    finish_reason: str | None
    usage: ResponseUsage | None
    units: list[UnitAnswer]
    question: str | None = Field(description="What a PersonaGym task asked; `null` for other tasks.")
    grades: list[GradeAnswer] = Field(description="Grades of a PersonaGym response, one for each judge.")
    score: float | None = Field(description="The mean over the judges that gave a score.")
    reused: Origin | None = Field(description="Which job's text it is, if no call was made for it.")


class ResponseList(Page):
    """A page of responses."""

    data: list[ResponseAnswer]
