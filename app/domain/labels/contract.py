"""Annotations and rounds of labelling as clients ask for them and are shown them."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from app.domain.contract import Answer, Body, Identifier, Page, Text
from app.domain.labels import annotation
from app.domain.labels.annotation import MOST_ROWS
from app.domain.labels.annotation_file import AnnotationDraft
from app.domain.labels.rounds import MOST_ANSWERS_EACH, MOST_THINGS, Allocation, LabellingKind
from app.domain.metrics.interval import Ends
from app.domain.metrics.metric import Metric

RESPONSE = "resp_01kxyz0abcdefghjkmnpqrstvw-0-3-0"
ANNOTATIONS_EXAMPLE: JsonDict = {
    "annotations": [
        {"annotator": "anna", "response": RESPONSE, "unit": 2, "dimension": "E", "score": 4},
        {
            "annotator": "anna",
            "response": RESPONSE,
            "unit": 0,
            "dimension": "E",
            "other_response": RESPONSE,
            "other_unit": 1,
            "preferred": "second",
        },
    ]
}
ROUND_EXAMPLE: JsonDict = {
    "job": "job_01kxyz0abcdefghjkmnpqrstvw",
    "kind": "pairs",
    "dimension": "E",
    "size": 50,
}

Unit = Annotated[int, Field(ge=0, le=32_767)]


class AnnotationIn(Body):
    """One annotator's answer: a score of a sentence or response, or which sentence of a pair would get the higher one."""

    annotator: Annotated[Text, Field(min_length=1, max_length=100)] = Field(
        description="Who says it; the same name is the same person.", examples=["anna"]
    )
    response: Annotated[str, Field(max_length=100)] = Field(
        description="A response's id.", examples=[RESPONSE]
    )
    unit: Unit | None = Field(None, description="A sentence's `index`; left out for the whole response.")
    dimension: Identifier | None = Field(
        None,
        description="On which; may be left out where there is only one. Of a whole PersonaGym response, left out means by"
        " its task's rubric.",
    )
    score: int | Literal["not_applicable"] | None = Field(None, description="On the dimension's scale.")
    other_response: Annotated[str, Field(max_length=100)] | None = Field(
        None, description="Of a pair: the response of the second sentence."
    )
    other_unit: Unit | None = Field(None, description="Of a pair: the second sentence.")
    preferred: Literal["first", "second", "equal"] | None = Field(
        None, description="Of a pair: which is nearer to the upper end of the dimension's scale."
    )

    def to_draft(self, pointer: str) -> AnnotationDraft:
        """The annotation as the domain knows it."""
        return AnnotationDraft(
            pointer=pointer,
            annotator=self.annotator,
            response=self.response,
            unit=self.unit,
            dimension=self.dimension,
            score=self.score,
            other_response=self.other_response,
            other_unit=self.other_unit,
            preferred=None if self.preferred is None else annotation.Answer(self.preferred),
        )


class AnnotationsIn(Body):
    """Annotations, all of which are kept or none."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [ANNOTATIONS_EXAMPLE]}
    )

    annotations: list[AnnotationIn] = Field(min_length=1, max_length=MOST_ROWS)

    def to_drafts(self, start: int = 0) -> list[AnnotationDraft]:
        """The annotations as the domain knows them, the first of which has the index ``start``."""
        return [each.to_draft(f"/annotations/{n}") for n, each in enumerate(self.annotations, start)]


class LabellingRoundIn(Body):
    """A sample of a job's sentences, whole responses or pairs of sentences, for people to label."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [ROUND_EXAMPLE]})

    job: Annotated[str, Field(max_length=100)] = Field(description="A finished job.")
    kind: Annotated[LabellingKind, Field(strict=False)] = Field(
        description="`sentences` are scored; in `pairs`, the sentence closer to the scale's upper end is "
        "chosen; whole `responses` to PersonaGym tasks are graded by the judges' rubric."
    )
    dimension: Identifier | None = Field(
        None, description="Required if the job has several; not for `responses`."
    )
    size: int = Field(50, ge=1, le=MOST_THINGS, description="Number to draw; fewer if there are fewer.")
    seed: int = Field(0, ge=0, le=2**31)
    allocation: Annotated[Allocation, Field(strict=False)] = Field(
        Allocation.EVEN,
        description="`even`: equally many of each score; `neyman`: sentences not drawn before, more where "
        "earlier labels of people and judges differ more, so that calibrated values have the "
        "narrowest intervals.",
    )
    answers_each: int | None = Field(
        None,
        ge=1,
        le=MOST_ANSWERS_EACH,
        description="Number of people who answer each; then it is no longer shown to others. `null`: everyone "
        "answers all.",
    )

    @model_validator(mode="after")
    def _only_sentences_are_divided(self) -> Self:
        if self.kind is not LabellingKind.SENTENCES and self.allocation is Allocation.NEYMAN:
            raise ValueError("allocation neyman is for sentences")
        return self


class KeptAnnotations(Answer):
    """The outcome of adding annotations."""

    created: int
    changed: int = Field(description="Those that replaced an earlier answer by the same annotator.")
    unchanged: int = Field(description="Those that were already stored.")


class Annotation(Answer):
    """One annotator's answer."""

    object: Literal["annotation"] = "annotation"
    job: str
    annotator: str
    response: str
    unit: int | None = Field(description="`null`: the whole response.")
    dimension: str | None = Field(description="`null`: by a PersonaGym task's rubric.")
    score: int | Literal["not_applicable"] | None = Field(description="`null` for a pair.")
    other_response: str | None
    other_unit: int | None
    preferred: Literal["first", "second", "equal"] | None
    created_at: datetime
    updated_at: datetime


class AnnotationList(Page[Annotation]):
    """A page of annotations, in the order in which they were first given."""


class Stratum(Answer):
    """What was drawn from the sentences (or pairs) with the same judges' score, or from the responses of one model and task."""

    task: str
    model: str | None = Field(None, description="Only for responses.")
    scores: list[int] = Field(
        description="The judges' mean score, rounded: one for sentences, two for pairs, none for responses."
    )
    drawn: int
    available: int = Field(
        description="Number to draw from; for pairs, the number with the first score × the number with the "
        "second."
    )
    spread: float | None = Field(
        None,
        description="For a Neyman round: the standard deviation of the difference of people and judges in "
        "ACC_atom, by earlier labels.",
    )


class Labelled(Answer):
    """An annotator's progress."""

    annotator: str
    answered: int


class LabellingRound(Answer):
    """A sample for people to label: the same for everyone, each in a different order."""

    id: str = Field(examples=["lab_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["labelling_round"] = "labelling_round"
    job: str
    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None = Field(description="`null` for responses.")
    size: int = Field(description="Number requested.")
    seed: int
    allocation: Literal["even", "neyman"]
    answers_each: int | None = Field(
        description="Number of people who answer each; `null`: everyone answers all."
    )
    n: int = Field(description="Number drawn.")
    strata: list[Stratum]
    annotators: list[Labelled]
    created_at: datetime
    links: dict[str, str] = Field(examples=[{"page": "/label/lab_01kxyz0abcdefghjkmnpqrstvw"}])


class CalibratedFigure(Answer):
    """A total, or a difference of two models' totals, estimated as people would score it."""

    keys: dict[str, str] = Field(
        description="What its cells have in common; for a difference (a − b), the models `a` and `b`.",
        examples=[{"model": "simulated/sim-faithful"}],
    )
    metric: Literal["mean", "acc_atom", "acc_atom_corrected", "persona_score"] = Field(
        description="`persona_score`: the model's PersonaScore, or its score in `task`, from graded answers."
    )
    judged: float | None = Field(description="The judges' value.")
    calibrated: Metric = Field(
        description="The value people would give. n counts labels. For totals, `ci95` is over other personas "
        "like these, `ci95_runs` over these cells measured again, and `ci95_wordings` and "
        "`ci95_both` are as in the results; differences have none of them."
    )
    ci95_texts: Ends | None = Field(
        description="Interval for these texts, over other draws of the labelled texts; of this figure alone, also where "
        "several models are compared."
    )
    ci95_texts_reason: str | None = None
    labels_needed: int | None = Field(
        description="Labels needed for `ci95_texts` of ± `half_width`, divided over the scores as now; for"
        " `persona_score`, grades of answers of more personas."
    )
    labels_needed_at_best: int | None = Field(
        description="The same with the best division: more labels where people and judges differ more."
    )
    rogan_gladen: Metric | None = Field(
        None,
        description="For models' ACC_atom: the judges' value corrected by their sensitivity and specificity "
        "at each level, assumed to be the same for all models.",
    )


By = Literal["level", "model", "length"]


class JudgeErrors(Answer):
    """A judge's errors on a group of sentences, each weighted by the number it represents."""

    judge: str
    by: By | None = Field(description="`null`: all sentences.")
    key: str | None
    mean_difference: Metric = Field(description="The judge's score − the annotators'.")
    exact_agreement: Metric
    from_others: Metric = Field(description="`mean_difference` − that of all other sentences.")
    confusion: dict[int, dict[int, Metric]] = Field(
        description="By the annotators' score: the share of each judge's score."
    )


class DimensionCalibration(Answer):
    """What labels from labelling rounds say about the values on one dimension."""

    dimension: str
    labels: int = Field(description="Sentences that rounds drew and people labelled.")
    totals: list[CalibratedFigure]
    differences: list[CalibratedFigure]
    judge_errors: list[JudgeErrors]


class JobCalibration(Answer):
    """A job's totals as people would score them; empty if nothing that was drawn has been labelled."""

    job: str
    half_width: float
    totals: list[CalibratedFigure] = Field(
        description="Over all dimensions, `null` if one of them has no labelled sentence; and `persona_score`."
    )
    differences: list[CalibratedFigure]
    not_calibrated: dict[str, str] = Field(description="Why other metrics are not calibrated.")
    data: list[DimensionCalibration] = Field(description="By dimension.")
