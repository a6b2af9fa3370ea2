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

    job: Annotated[str, Field(max_length=100)] = Field(description="A job that is over.")
    kind: Annotated[LabellingKind, Field(strict=False)] = Field(
        description="`sentences` are scored, of `pairs` the one is chosen that is nearer to the scale's upper end; whole"
        " `responses` to PersonaGym tasks are graded by the rubric that judges grade by."
    )
    dimension: Identifier | None = Field(
        None, description="On which; may be left out where the job has only one. Not of `responses`."
    )
    size: int = Field(50, ge=1, le=MOST_THINGS, description="How many; fewer if there are not so many.")
    seed: int = Field(0, ge=0, le=2**31)
    allocation: Annotated[Allocation, Field(strict=False)] = Field(
        Allocation.EVEN,
        description="`even`: as many of each score; `neyman`: sentences that no round has drawn, more where by earlier labels people"
        " and judges differ more, so that calibrated figures have the narrowest intervals.",
    )
    answers_each: int | None = Field(
        None,
        ge=1,
        le=MOST_ANSWERS_EACH,
        description="How many people answer each; what so many have answered is not shown to others. `null`: everybody answers all.",
    )

    @model_validator(mode="after")
    def _only_sentences_are_divided(self) -> Self:
        if self.kind is not LabellingKind.SENTENCES and self.allocation is Allocation.NEYMAN:
            raise ValueError("allocation neyman is for sentences")
        return self


class KeptAnnotations(Answer):
    """What became of annotations that were sent."""

    created: int
    changed: int = Field(description="Those that replaced another answer of the same annotator.")
    unchanged: int = Field(description="Those that were there already.")


class Annotation(Answer):
    """One annotator's answer."""

    object: Literal["annotation"] = "annotation"
    job: str
    annotator: str
    response: str
    unit: int | None = Field(description="`null`: the whole response.")
    dimension: str | None = Field(description="`null`: by a PersonaGym task's rubric.")
    score: int | Literal["not_applicable"] | None = Field(description="`null` of a pair.")
    other_response: str | None
    other_unit: int | None
    preferred: Literal["first", "second", "equal"] | None
    created_at: datetime
    updated_at: datetime


class AnnotationList(Page[Annotation]):
    """A page of annotations, in the order in which they were first given."""


class Stratum(Answer):
    """What was drawn of the sentences, or pairs, that the judges gave the same; of responses of one model and task."""

    task: str
    model: str | None = Field(None, description="Of responses.")
    scores: list[int] = Field(
        description="The judges' mean score, rounded: one, of a pair two, of responses none."
    )
    drawn: int
    available: int = Field(
        description="Sentences or responses; of a pair those with the first score times the others."
    )
    spread: float | None = Field(
        None,
        description="Of a Neyman round: the standard deviation of how far people and judges are apart in ACC_atom, by earlier labels.",
    )


class Labelled(Answer):
    """How far an annotator has come."""

    annotator: str
    answered: int


class LabellingRound(Answer):
    """A sample that people are shown: the same for everybody, in a different order for each."""

    id: str = Field(examples=["lab_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["labelling_round"] = "labelling_round"
    job: str
    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None = Field(description="`null` of responses.")
    size: int = Field(description="How many were asked for.")
    seed: int
    allocation: Literal["even", "neyman"]
    answers_each: int | None = Field(
        description="How many people answer each; `null`: everybody answers all."
    )
    n: int = Field(description="How many there are.")
    strata: list[Stratum]
    annotators: list[Labelled]
    created_at: datetime
    links: dict[str, str] = Field(examples=[{"page": "/label/lab_01kxyz0abcdefghjkmnpqrstvw"}])


class CalibratedFigure(Answer):
    """A total, or the difference of two models' totals, as people would give it."""

    keys: dict[str, str] = Field(
        description="What its cells have in common; of a difference the models `a` and `b`, of which it is a − b.",
        examples=[{"model": "simulated/sim-faithful"}],
    )
    metric: Literal["mean", "acc_atom", "acc_atom_corrected"]
    judged: float | None = Field(description="As the judges give it.")
    calibrated: Metric = Field(
        description="As people would give it. n counts labels. Of totals, `ci95` is over other personas like these and"
        " `ci95_runs` over these cells measured again, `ci95_wordings` and `ci95_both` as in the results; of differences there is none."
    )
    ci95_texts: Ends | None = Field(description="For these very texts, were other sentences labelled.")
    ci95_texts_reason: str | None = None
    labels_needed: int | None = Field(
        description="For `ci95_texts` of ± `half_width`, divided over the scores as now."
    )
    labels_needed_at_best: int | None = Field(
        description="The same, divided as well as can be: more where people and judges differ more."
    )
    rogan_gladen: Metric | None = Field(
        None,
        description="Of models' ACC_atom: the judges' figure corrected by their sensitivity and specificity in each level, taken"
        " to be the same for all models.",
    )


By = Literal["level", "model", "length"]


class JudgeErrors(Answer):
    """A judge's errors on some sentences, each counting for as many as it stands for."""

    judge: str
    by: By | None = Field(description="`null`: of all.")
    key: str | None
    mean_difference: Metric = Field(description="The judge's score less the annotators'.")
    exact_agreement: Metric
    from_others: Metric = Field(description="`mean_difference` less that of all other sentences.")
    confusion: dict[int, dict[int, Metric]] = Field(
        description="By the annotators' score the share of each of the judge's."
    )


class DimensionCalibration(Answer):
    """What labels of rounds say of the figures on one dimension."""

    dimension: str
    labels: int = Field(description="Sentences that rounds drew and somebody labelled.")
    totals: list[CalibratedFigure]
    differences: list[CalibratedFigure]
    judge_errors: list[JudgeErrors]


class JobCalibration(Answer):
    """A job's totals as people would give them; empty where no sentence that a round drew is labelled."""

    job: str
    half_width: float
    totals: list[CalibratedFigure] = Field(
        description="Over all dimensions; null where on one of them no sentence is labelled."
    )
    differences: list[CalibratedFigure]
    not_calibrated: dict[str, str] = Field(description="Why the other metrics are not here.")
    data: list[DimensionCalibration] = Field(description="By dimension.")
