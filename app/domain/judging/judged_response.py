"""A response with its units and everybody's verdicts on them, as clients and readers of a report are shown it.

They are dataclasses and not models, as a big export makes hundreds of thousands; nobody changes one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from app.domain.contract import Page
from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.response_figures import ResponseFigures
from app.domain.judging.text_notes import LeftOut, TextNotes
from app.domain.judging.verdict import Unread, VerdictStatus
from app.domain.providers.model import FinishReason
from app.domain.providers.reuse import ReplyOrigin

ResponseStatus = Literal["answered", "refused", "filtered", "no_answer", "failed"]

_Reused = Annotated[
    ReplyOrigin | None, Field(description="Where the reply was reused from, if no call was made.")
]
_Doubt = Annotated[
    Suspicion | None,
    Field(
        description="Why it is uncertain: `text` (contains a prompt injection), `reply` (under `hardened`: "
        "lacks the key word) or `both`."
    ),
]
_Ended = Annotated[
    FinishReason | None,
    Field(description="Why the judge's reply ended; `null` without a reply, or if not recorded."),
]
_Thought = Annotated[
    str | None,
    Field(description="The judge's thoughts before its reply, which are not scored. Untrusted text."),
]
_Unread = Annotated[
    Unread | None,
    Field(
        description="Why the judge's first reply could not be read; `null` if it could. With a score, the reply "
        "to the follow-up request gave it."
    ),
]
_Repair = Annotated[
    str | None,
    Field(
        description="The judge's reply to the follow-up request; `null` if there was none. Untrusted text."
    ),
]
_Raw = Annotated[
    str | None,
    Field(description="The judge's reply; `null` if it was not asked or did not answer. Untrusted text."),
]


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """One judge's verdict on one sentence."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    judge: str
    dimension: str
    status: Annotated[
        VerdictStatus,
        Field(
            description="`filtered`: refused by the content filter of the judge's provider, not by the judge."
        ),
    ]
    score: int | None
    raw: _Raw
    error: Annotated[
        str | None,
        Field(description="Why there is no reply, or none to the follow-up. Untrusted text."),
    ]
    in_character: Annotated[
        bool | None,
        Field(
            description="Whether the score lies in the persona's level; `null` without a score or a persona."
        ),
    ]
    group_size: Annotated[int, Field(description="Number of sentences in the same judging call.")]
    reused: _Reused
    suspicion: _Doubt
    finish_reason: _Ended
    thoughts: _Thought
    unread: _Unread = None
    repair_raw: _Repair = None


@dataclass(slots=True)
class JudgedUnit:
    """One sentence."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    index: int
    span: Annotated[
        tuple[int, int], Field(description="Offsets in the response's text, in Unicode code points.")
    ]
    text: Annotated[str, Field(description="The sentence as the judge read it. Untrusted text.")]
    verdicts: Annotated[
        tuple[UnitVerdict, ...],
        Field(description="Ordered by dimension and judge; possibly incomplete while the job runs."),
    ]

    @property
    def out_of_character(self) -> bool:
        """Whether any judge's score lies outside the persona's level."""
        return any(verdict.in_character is False for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class LeftOutSentence:
    """A sentence that the job left out of judging (`judging.leave_out`)."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    span: Annotated[tuple[int, int], Field(description="Offsets in the response's text.")]
    text: Annotated[str, Field(description="The sentence. Untrusted text.")]
    reason: LeftOut


@dataclass(frozen=True, slots=True)
class ResponseGrade:
    """One judge's grade of a whole response, by its question's rubric."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    judge: str
    status: Annotated[VerdictStatus, Field(description="Never `not_applicable`.")]
    score: Annotated[int | None, Field(description="1 to 5.")]
    justification: Annotated[
        str | None, Field(description="The judge's reasons; `null` without a reply. Untrusted text.")
    ]
    raw: _Raw
    error: Annotated[
        str | None, Field(description="Why there is no reply, or none to the follow-up. Untrusted text.")
    ]
    reused: _Reused
    suspicion: _Doubt
    finish_reason: _Ended
    thoughts: _Thought
    unread: _Unread = None
    repair_raw: _Repair = None


@dataclass(frozen=True, slots=True)
class AskedItem:
    """What was asked: a question or context."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: str
    text: Annotated[str, Field(description="Empty if the task has none.")]


@dataclass(frozen=True, slots=True)
class ResponseUsage:
    """Tokens of one response."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    input_tokens: int
    output_tokens: int
    reasoning_tokens: Annotated[
        int | None,
        Field(description="Output tokens that are thoughts; `null` if the provider does not report them."),
    ]


@dataclass(slots=True)
class JudgedResponse:
    """A response with its sentences and their verdicts."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: Annotated[str, Field(description="The same after retries.")]
    model: str
    persona: Annotated[
        str,
        Field(
            description="The persona's id; in the control arm, empty, or for PersonaGym the persona whose "
            "question it is."
        ),
    ]
    levels: Annotated[
        dict[str, str],
        Field(description="The persona's levels, by dimension on which this response is judged."),
    ]
    task: str
    item: AskedItem
    run: Annotated[int, Field(description="Repetition, from 0.")]
    instruction: Annotated[
        int | None,
        Field(
            description="Number of the persona instruction, from 0, as in the manifest; `null` if unknown."
        ),
    ]
    iteration: Annotated[
        int | None, Field(description="Repetition under that instruction, from 0; `null` if unknown.")
    ]
    status: Annotated[
        ResponseStatus,
        Field(
            description="`filtered`: refused or stopped by the provider's content filter. `no_answer`: only "
            "thoughts, or ended early for an unknown reason. Only `answered` responses are judged."
        ),
    ]
    text: Annotated[
        str | None,
        Field(description="`null` if the call failed, or if only verdicts were imported. Untrusted text."),
    ]
    refusal: Annotated[bool, Field(description="Whether `status` is `refused`.")]
    error: Annotated[str | None, Field(description="Why there is no text, or none to judge.")]
    finish_reason: Annotated[
        FinishReason | None, Field(description="Why the model stopped; `null` for existing texts.")
    ]
    usage: ResponseUsage | None
    thoughts: Annotated[
        str | None,
        Field(
            description="The model's thoughts before the text, which are not judged; empty if the provider hides "
            "them, `null` if the model did not think. Untrusted text."
        ),
    ]
    units: tuple[JudgedUnit, ...]
    question: Annotated[
        str | None, Field(description="The question of a PersonaGym task; `null` for other tasks.")
    ]
    grades: Annotated[
        tuple[ResponseGrade, ...],
        Field(
            description="Grades of a PersonaGym response, ordered by judge; possibly incomplete while the job "
            "runs."
        ),
    ]
    score: Annotated[float | None, Field(description="Mean over the judges that gave a score.")]
    reused: Annotated[
        ReplyOrigin | None, Field(description="Where the text was reused from, if no call was made.")
    ]
    persona_description: Annotated[str, Field(description="The persona's description. Untrusted text.")]
    persona_traits: Annotated[
        tuple[str, ...],
        Field(description="All of the persona's traits in words, such as `high in extraversion`."),
    ]
    conversation: Annotated[
        str | None, Field(description="The conversation of which it is a turn; `null` for other texts.")
    ] = None
    figures: Annotated[
        tuple[ResponseFigures, ...],
        Field(description="Its figures on each dimension on which its sentences have verdicts."),
    ] = ()
    notes: Annotated[
        TextNotes | None, Field(description="What is odd about the text; `null` if nothing.")
    ] = None
    left_out: Annotated[
        tuple[LeftOutSentence, ...], Field(description="Sentences that were not judged; not among `units`.")
    ] = ()
    imported_judges: Annotated[
        tuple[str, ...], Field(description="Judges that were never called: their verdicts were imported.")
    ] = ()


def mean_score(grades: Iterable[ResponseGrade]) -> float | None:
    """The mean over the judges that gave a score; ``None`` where none did."""
    scores = [grade.score for grade in grades if grade.score is not None]
    return fmean(scores) if scores else None


class ResponseList(Page[JudgedResponse]):
    """A page of responses."""
