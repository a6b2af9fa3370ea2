"""Verdicts that exist already, as a client sends them with the texts that they are about."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, model_validator

from app.domain.contract import Body, Identifier, Line, Prose, in_parts
from app.domain.judging.imported import Unscored
from app.domain.personagym.task import GRADE_SCALE
from app.domain.providers.model import Provenance

MOST_UNITS = 32_767
"""Sentences of one text: they are numbered by two-byte integers."""


class ProvenanceIn(Body):
    """Where an imported judge's verdicts come from."""

    source: Line = Field(description="A file, a paper, a service.", examples=["atomic_scores.txt"])
    date: Annotated[str, Field(pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?$")] | None = (
        Field(None, description="When they were given: a year, month or day.", examples=["2024-06-01"])
    )
    note: Prose | None = Field(None, description="More, for people.")

    def to_provenance(self) -> Provenance:
        """The same as a specification keeps it."""
        return Provenance(self.source, self.date, self.note)


class ImportedJudgeIn(Body):
    """A judge whose verdicts come with the responses. It is never called."""

    imported: Line = Field(description="Its name in verdicts and results.", examples=["gpt-4o-2024-05-13"])
    provenance: ProvenanceIn


def imported_judges(request: Mapping[str, Any]) -> list[str]:
    """Names of the imported judges in a job's submitted body, in its order."""
    judges = request.get("judges") or ()
    return [judge["imported"] for judge in judges if isinstance(judge, Mapping) and "imported" in judge]


def _score_kind(value: object) -> str:
    return "word" if isinstance(value, str) else "number"


ScoreIn = Annotated[
    Annotated[int, Tag("number")] | Annotated[Unscored, Tag("word")], Discriminator(_score_kind)
]


GradesIn = Annotated[
    dict[Line, Annotated[int, Field(ge=GRADE_SCALE.minimum, le=GRADE_SCALE.maximum)] | None],
    Field(max_length=10),
]


class VerdictsIn(Body):
    """What one imported judge said of a response on one dimension: `scores`, or one `score` for all of it."""

    judge: Line = Field(description="An imported judge of the job.")
    dimension: Identifier | None = Field(
        None, description="Required if the response is judged on several.", examples=["E"]
    )
    scores: Annotated[list[ScoreIn | None], in_parts(100, MOST_UNITS)] | None = Field(
        None,
        max_length=MOST_UNITS,
        description="One for each sentence, in order; `null` is missing.",
        examples=[[5, 4, None, "not_applicable"]],
    )
    score: ScoreIn | None = Field(
        None, description="The whole response's, which then counts as one sentence; `null` is missing."
    )

    @model_validator(mode="after")
    def _of_one_form(self) -> "VerdictsIn":
        if ("score" in self.model_fields_set) == (self.scores is not None):
            raise ValueError("give either scores, one for each sentence, or score, for the whole response")
        return self
