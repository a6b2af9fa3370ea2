"""Schemas of answers about responses, their sentences and verdicts."""

from typing import Annotated, Literal

from pydantic import Field

from app.domain.contract import Answer, Page
from app.domain.providers.usage import Origin

FinishedBy = Literal["stop", "length", "content_filter", "refusal", "unstated", "other"]
"""Why a model stopped; ``unstated`` where its provider does not say."""


SuspicionAnswer = Annotated[
    Literal["text", "reply", "both"] | None,
    Field(
        description="What makes it doubtful: `text` (it addresses the judge), `reply` (under `hardened`: without the key"
        " word) or `both`."
    ),
]


class VerdictAnswer(Answer):
    """One judge's verdict on one sentence."""

    judge: str
    dimension: str
    status: Literal["scored", "not_applicable", "refused", "filtered", "unparsed", "failed"] = Field(
        description="`filtered`: refused by the content filter of the judge's provider, not by the judge."
    )
    score: int | None
    raw: str | None
    error: str | None = Field(description="Why there is no reply; `null` where there is one.")
    in_character: bool | None
    group_size: int = Field(
        description="Sentences that the judge was asked about in the same call; 1 where alone."
    )
    reused: Origin | None = Field(description="Which job's reply it is, if no call was made for it.")
    suspicion: SuspicionAnswer
    finish_reason: FinishedBy | None = Field(
        description="Why the judge's reply ended; `null` where there is none, or if that was not kept."
    )
    thoughts: str | None = Field(description="What the judge thought before; nothing of it is scored.")


class UnitAnswer(Answer):
    """One sentence."""

    index: int
    span: tuple[int, int] = Field(description="Offsets in the response's text, in Unicode code points.")
    text: str = Field(description="The sentence as the judge read it.")
    verdicts: list[VerdictAnswer]


class GradeAnswer(Answer):
    """One judge's grade of a whole response, by its question's rubric."""

    judge: str
    status: Literal["scored", "refused", "filtered", "unparsed", "failed"]
    score: int | None
    justification: str | None
    raw: str | None
    error: str | None = Field(description="Why there is no reply.")
    reused: Origin | None = Field(description="Which job's reply it is, if no call was made for it.")
    suspicion: SuspicionAnswer
    finish_reason: FinishedBy | None = Field(
        description="Why the judge's reply ended; `null` where there is none, or if that was not kept."
    )
    thoughts: str | None = Field(description="What the judge thought before; nothing of it is scored.")


class ItemAnswer(Answer):
    """What was asked."""

    id: str
    text: str


class ResponseUsage(Answer):
    """Tokens of one response."""

    input_tokens: int
    output_tokens: int
    reasoning_tokens: int | None = Field(
        description="Those of the output that are thoughts; `null` where the provider does not say."
    )


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
    status: Literal["answered", "refused", "filtered", "no_answer", "failed"] = Field(
        description="`filtered`: refused or stopped by the provider's content filter. `no_answer`: nothing but thoughts, or stopped"
        " for a reason that ends no answer. Only what is `answered` is judged."
    )
    text: str | None
    refusal: bool
    error: str | None = Field(description="Why there is no text, or none to be judged.")
    finish_reason: FinishedBy | None = Field(description="Why the model stopped; `null` for existing texts.")
    usage: ResponseUsage | None
    thoughts: str | None = Field(
        description="What the model thought before it wrote the text, which is not judged; empty where its provider keeps that to"
        " itself, `null` where it did not think."
    )
    units: list[UnitAnswer]
    question: str | None = Field(description="What a PersonaGym task asked; `null` for other tasks.")
    grades: list[GradeAnswer] = Field(description="Grades of a PersonaGym response, one for each judge.")
    score: float | None = Field(description="The mean over the judges that gave a score.")
    reused: Origin | None = Field(description="Which job's text it is, if no call was made for it.")


class ResponseList(Page[ResponseAnswer]):
    """A page of responses."""
