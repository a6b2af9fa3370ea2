"""Schemas of answers about what people say of sentences and responses."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from app.domain.contract import Answer, Page
from app.domain.metrics.metric import Metric


class KeptAnnotations(Answer):
    """What became of annotations that were sent."""

    created: int
    changed: int = Field(description="Those that replaced another answer of the same annotator.")
    unchanged: int = Field(description="Those that were there already.")


class Annotation(Answer):
    """One annotator's answer."""

    object: Literal["annotation"]
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


class WeightedWithJudge(Answer):
    """The same of the sentences, or pairs, from which labelling rounds drew, each counting for as many as it stands for."""

    kendall_tau: Metric
    spearman_rho: Metric | None = Field(None, description="Of scores only.")


class WeightedAgreement(Answer):
    """Agreement of the sentences, or pairs, from which labelling rounds drew."""

    fleiss_kappa: Metric
    population: int = Field(description="Sentences, or pairs, from which rounds drew; 0 without a round.")
    covered: int = Field(
        description="Of them those in strata with an answer, of which all weighted figures are."
    )


class AgreementWithJudge(Answer):
    """How far annotators agree with one judge."""

    judge: str
    kendall_tau: Metric = Field(
        description="Of scores τ_b between the judge's and the annotators' mean; of pairs τ_A: answers in the order of the"
        " judge's scores less those against it, by all. n counts the things compared."
    )
    spearman_rho: Metric | None = Field(None, description="Of scores only.")
    weighted: WeightedWithJudge = Field(
        description="Both, of all that was drawn from; those above are of what was drawn."
    )
    left_out: dict[str, int] = Field(
        description="`without_score`: the judge gave none; of pairs `same_score`: the same to both.",
        examples=[{"without_score": 2}],
    )


class HumanAgreement(Answer):
    """How far annotators agree with the judges and with each other, on one dimension (atomic paper, Table 3)."""

    kind: Literal["sentences", "responses", "pairs"]
    dimension: str | None
    task: str | None = Field(description="Where a PersonaGym task's rubric was used.")
    annotators: int
    n: int = Field(description="Sentences, responses or pairs with an answer.")
    answers: int
    not_applicable: int = Field(description="Those that all who answered found not applicable.")
    fleiss_kappa: Metric = Field(description="Among the annotators; n counts those with two answers or more.")
    weighted: WeightedAgreement
    judges: list[AgreementWithJudge]


class Stratum(Answer):
    """What was drawn of the sentences, or pairs, that the judges gave the same."""

    task: str
    scores: list[int] = Field(description="The judges' mean score, rounded: one, or of a pair two.")
    drawn: int
    available: int = Field(description="Sentences; of a pair those with the first score times the others.")


class Labelled(Answer):
    """How far an annotator has come."""

    annotator: str
    answered: int


class LabellingRound(Answer):
    """A sample that people are shown, the same for everybody, in an order of his own for each."""

    id: str = Field(examples=["lab_01kxyz0abcdefghjkmnpqrstvw"])
    object: Literal["labelling_round"]
    job: str
    kind: Literal["sentences", "pairs"]
    dimension: str
    size: int = Field(description="How many were asked for.")
    seed: int
    n: int = Field(description="How many there are.")
    strata: list[Stratum]
    annotators: list[Labelled]
    created_at: datetime
    links: dict[str, str] = Field(examples=[{"page": "/label/lab_01kxyz0abcdefghjkmnpqrstvw"}])
