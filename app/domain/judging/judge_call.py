"""What a judge was asked about a sentence or a response, and what it answered, word for word."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.domain.contract import Answer
from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.verdict import Unread, VerdictStatus
from app.domain.providers.model import FinishReason
from app.domain.providers.reuse import ReplyOrigin

Purpose = Literal["verdict", "grade", "group", "alone", "repeated", "reversed", "shuffled"]


class JudgeCall(Answer):
    """One judge's reply, and the prompt that it answers."""

    purpose: Annotated[
        Purpose,
        Field(
            description="`verdict` and `grade` are what counts. `group`: the reply about several sentences gave nothing usable for this one."
            " `alone`: the check of grouped judging. `repeated`, `reversed`, `shuffled`: the order check."
        ),
    ]
    judge: str
    dimension: Annotated[str | None, Field(description="`null` for a grade.")]
    units: Annotated[
        list[int], Field(description="The sentences that the call is about; empty for the whole response.")
    ]
    system: Annotated[
        str | None, Field(description="The system prompt; `null` where there is none. Untrusted text.")
    ]
    prompt: Annotated[
        str | None, Field(description="The user prompt; `null` where no judge was asked. Untrusted text.")
    ]
    parameters: Annotated[
        dict[str, Any], Field(description="Those that the judge's specification has sent with the prompt.")
    ]
    status: VerdictStatus
    score: int | None
    raw: Annotated[str | None, Field(description="The reply; `null` where there is none. Untrusted text.")]
    error: Annotated[
        str | None, Field(description="Why there is no reply, or none to the follow-up. Untrusted text.")
    ]
    finish_reason: Annotated[FinishReason | None, Field(description="Why the reply ended.")]
    thoughts: Annotated[str | None, Field(description="What the judge thought before. Untrusted text.")]
    unread: Annotated[
        Unread | None, Field(description="Why the first reply could not be read; `null` if it could.")
    ]
    repair_raw: Annotated[
        str | None,
        Field(description="The reply to the follow-up request; `null` without one. Untrusted text."),
    ]
    suspicion: Suspicion | None
    reused: Annotated[
        ReplyOrigin | None, Field(description="Which job's reply it is, if no call was made for it.")
    ]
    notes: Annotated[list[str], Field(description="What about this call is not as it looks.")]


class JudgeCalls(Answer):
    """What the judges were asked about one sentence, or about a response as a whole."""

    response: Annotated[str, Field(description="The response's id.")]
    unit: Annotated[int | None, Field(description="The sentence's index; `null` for the whole response.")]
    text: Annotated[
        str | None, Field(description="The sentence as judges read it, or the response. Untrusted text.")
    ]
    certain: Annotated[
        bool,
        Field(
            description="Prompts are not stored. They are made again from the stored job by the code that made the calls; whether this is the"
            " release that computed the job's results, so that the code is the same."
        ),
    ]
    release: Annotated[
        str | None, Field(description="The release that computed the results; `null` before there are any.")
    ]
    data: list[JudgeCall]
